use strict;
use warnings;
my %count;
$count{$_}++ for map { $_ * 7 % 11 } 1 .. 1000;
print join(",", map { "$_=$count{$_}" } sort { $a <=> $b } keys %count), "\n";
my $text = join " ", map { chr(97 + $_ % 26) x ($_ % 5 + 1) } 1 .. 60;
(my $copy = $text) =~ s/(\w)\1+/<$1>/g;
print "$copy\n";
printf "%.12f %s %d\n", atan2(1, 1) * 4, sprintf("%e", 1 / 3), 2**40;
print scalar reverse("olleh"), " ", join("|", split /,/, "a,b,,c"), "\n";
open my $pipe, "-|", "echo from a child; exit 3" or die;
print while <$pipe>;
close $pipe;
print $? >> 8, "\n";
my $pid = fork;
if (!$pid) { exit 9 }
waitpid $pid, 0;
print $? >> 8, "\n";
exit 5;
