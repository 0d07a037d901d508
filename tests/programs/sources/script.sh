#!/bin/bash -e
echo "$# $1 $2"
(exit 4)
