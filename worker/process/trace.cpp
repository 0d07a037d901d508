// See trace.h. The runtime calls with its code lock held, so nothing here needs one.
#include "worker/process/trace.h"

#include <capstone/capstone.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include "worker/process/descriptors.h"
#include "worker/process/lazy_data.h"
#include "worker/process/symbols.h"
#include "worker/translator/translate.h"

namespace phybin::process {
namespace {

struct Tracer {
  config::Trace options;
  Modules modules;
  std::map<std::string, AddressRange> functions;  // of options.symbol, by module
  csh x86 = 0, arm64 = 0;
};
Tracer* tracer = nullptr;

bool wanted(uint64_t address, const Module* module) {
  if (address < tracer->options.start || address >= tracer->options.end) return false;
  if (tracer->options.symbol.empty()) return true;
  if (module == nullptr) return false;
  auto found = tracer->functions.find(module->path);
  if (found == tracer->functions.end()) {
    found = tracer->functions.emplace(module->path, find_function(*module, tracer->options.symbol)).first;
  }
  return address >= found->second.start && address < found->second.end;
}

std::string disassemble(csh engine, const void* bytes, size_t size, uint64_t address) {
  cs_insn* instruction = nullptr;
  if (cs_disasm(engine, static_cast<const uint8_t*>(bytes), size, address, 1, &instruction) == 0) return "(data)";
  std::string text = instruction->mnemonic;
  if (instruction->op_str[0] != 0) text += std::string(" ") + instruction->op_str;
  cs_free(instruction, 1);
  return text;
}

void add_guest(std::string& out, const ir::GuestInstruction& instruction, const Module* module) {
  char text[512];
  uint8_t bytes[15];
  const size_t length = std::min<size_t>(instruction.length, sizeof bytes);
  const bool readable = runtime::copy_from_guest(bytes, instruction.address, length);
  std::string place = "?";
  if (module != nullptr) {
    const std::string name = module->path.substr(module->path.rfind('/') + 1);
    snprintf(text, sizeof text, "%s+%#lx", name.c_str(), instruction.address - module->start);
    place = text;
  }
  snprintf(text, sizeof text, "%#lx %s  %s\n", instruction.address, place.c_str(),
           readable ? disassemble(tracer->x86, bytes, length, instruction.address).c_str() : "(gone)");
  out += text;
}

void add_code(std::string& out, const runtime::TranslatedRegion& region, size_t from, size_t to) {
  char text[256];
  for (size_t i = from; i < to; ++i) {
    const auto address = reinterpret_cast<uint64_t>(region.code + i);
    snprintf(text, sizeof text, "    %#lx %08x  %s\n", address, region.code[i],
             disassemble(tracer->arm64, region.code + i, 4, address).c_str());
    out += text;
  }
}

void write_all(const std::string& text) {
  const int fd = message_descriptor();
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

}  // namespace

std::string start_trace(const config::Trace& options) {
  if (options.to != "on") {
    const int fd = open(options.to.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return "--trace-instruction: " + options.to + ": " + strerror(errno);
    keep_descriptor(OwnDescriptor::kMessages, fd);
  }
  tracer = new Tracer;  // for as long as the process lives
  tracer->options = options;
  if (!relocate_lazy_data() || cs_open(CS_ARCH_X86, CS_MODE_64, &tracer->x86) != CS_ERR_OK ||
      cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &tracer->arm64) != CS_ERR_OK) {
    return "--trace-instruction: no memory for the disassembler";
  }
  return {};
}

void trace_region(const runtime::TranslatedRegion& region) {
  const RegionCode& tables = *region.tables;
  std::string out;
  size_t start = 0;  // index into tables.starts
  for (size_t i = 0; i < tables.instructions.size(); ++i) {
    const ir::GuestInstruction& instruction = tables.instructions[i];
    if (instruction.length == 0) continue;  // where a safepoint resumes; not an instruction of the region
    const bool has_code = start < tables.starts.size() && tables.starts[start].instruction == i;
    const Module* module = tracer->modules.find(instruction.address);
    if (wanted(instruction.address, module)) {
      add_guest(out, instruction, module);
      if (has_code) {
        const bool last = start + 1 == tables.starts.size();
        const uint32_t end = last ? tables.cold_offset : tables.starts[start + 1].code_offset;
        add_code(out, region, tables.starts[start].code_offset / 4, end / 4);
      }
    }
    start += has_code;
  }
  if (!out.empty()) {
    out += "  out of line:\n";
    add_code(out, region, tables.cold_offset / 4, region.words);
    write_all(out);
  }
}

}  // namespace phybin::process
