// The log in systemd's journal: with level and fields, which a line on stderr could not carry.
#pragma once

namespace phybin::daemon {

// Sends the log there if systemd has connected stderr with the journal; otherwise changes nothing.
void log_to_journal_if_there();

}  // namespace phybin::daemon
