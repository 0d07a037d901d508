// The tables of the index. A change raises kSchemaVersion; an index of another version is begun anew, which costs
// profiles and digests but no image.
#pragma once

namespace phybin::daemon {

inline constexpr int kSchemaVersion = 2;

inline constexpr char kSchema[] = R"(
-- One row for each image file. scope: whom it serves, a user id or -1 for everyone.
CREATE TABLE images (
  id INTEGER PRIMARY KEY,
  module BLOB NOT NULL, build BLOB NOT NULL, features INTEGER NOT NULL, options INTEGER NOT NULL,
  scope INTEGER NOT NULL, generation INTEGER NOT NULL, file_bytes INTEGER NOT NULL, profile INTEGER NOT NULL,
  entries INTEGER NOT NULL, created INTEGER NOT NULL, last_used INTEGER NOT NULL, uses INTEGER NOT NULL,
  origin INTEGER NOT NULL,
  UNIQUE (module, build, features, options, scope));
-- ELF files by content. everyone: belongs to root, and nobody else can change it.
CREATE TABLE modules (
  digest BLOB PRIMARY KEY, bytes INTEGER NOT NULL, everyone INTEGER NOT NULL) WITHOUT ROWID;
-- Users who have shown that they can read a module, under which name, and when last.
CREATE TABLE proofs (
  module BLOB NOT NULL, uid INTEGER NOT NULL, name TEXT NOT NULL, seen INTEGER NOT NULL,
  PRIMARY KEY (module, uid)) WITHOUT ROWID;
-- Digests of files, so that a file is not read again as long as it has not changed.
CREATE TABLE files (
  file_system BLOB NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL, scope INTEGER NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
  digest BLOB NOT NULL, seen INTEGER NOT NULL,
  PRIMARY KEY (file_system, device, inode, scope)) WITHOUT ROWID;
-- Files that a program has mapped, by user: their images are offered when it starts.
CREATE TABLE uses (
  uid INTEGER NOT NULL, program BLOB NOT NULL, device INTEGER NOT NULL, inode INTEGER NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
  module BLOB NOT NULL, seen INTEGER NOT NULL,
  PRIMARY KEY (uid, program, device, inode)) WITHOUT ROWID;
-- Entry points met in a module, by user: file offsets, 32 bits each, ascending.
CREATE TABLE entries (
  module BLOB NOT NULL, uid INTEGER NOT NULL, offsets BLOB NOT NULL, seen INTEGER NOT NULL,
  PRIMARY KEY (module, uid)) WITHOUT ROWID;
-- Images that could not be made: not tried again before retry_at.
CREATE TABLE failures (
  module BLOB NOT NULL, build BLOB NOT NULL, features INTEGER NOT NULL, options INTEGER NOT NULL,
  scope INTEGER NOT NULL, count INTEGER NOT NULL, retry_at INTEGER NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (module, build, features, options, scope)) WITHOUT ROWID;
)";

}  // namespace phybin::daemon
