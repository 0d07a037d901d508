// What a process that translates files of others gives up before it looks at them: it has opened all that it needs.
#pragma once

namespace phybin::compile {

// From now on the process can read and write what it has open, get memory, and end; anything else kills it. Where the
// system offers no such thing, all stays as it is: who starts the process sets limits of its own, too.
void enter_sandbox();

}  // namespace phybin::compile
