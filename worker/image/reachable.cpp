// See reachable.h. From the roots (roots.h) code is followed: behind calls, along both sides of branches, to what it
// takes the address of, and through tables of 32-bit distances that switch statements jump by. Each offset of the
// text is decoded at most once.
#include "worker/image/reachable.h"

#include <cstring>
#include <set>

#include "worker/image/roots.h"
#include "worker/translator/decode/instruction.h"

namespace phybin::image {
namespace {

using decode::Instruction;
using decode::Mnemonic;
using decode::OperandKind;

class Walk {
 public:
  explicit Walk(const Module& module) : module_(module), starts_(module.text_bytes), rows_left_(module.size) {}

  void run() {
    for (const uint64_t root : find_roots(module_)) push(root);
    follow();
    // A table ends where the next one may begin; those are known when all code has been seen, but for the code that
    // only tables lead to.
    follow_tables();
    for (uint64_t offset = 0; offset < module_.text_bytes;) {
      Instruction in;
      if (!starts_[offset]) {
        push(module_.text_address + offset);
        follow();
        follow_tables();
      }
      offset += decode_at(offset, in) ? in.length : 1;
    }
  }

  bool reached(uint64_t offset) const { return starts_[offset]; }

 private:
  void push(uint64_t address) {
    if (module_.in_text(address) && !starts_[address - module_.text_address]) pending_.push_back(address);
  }

  void follow_tables() {
    while (!new_tables_.empty()) {
      std::vector<uint64_t> tables;
      tables.swap(new_tables_);
      for (const uint64_t table : tables) read_table(table);
      follow();
    }
  }

  bool decode_at(uint64_t offset, Instruction& in) const {
    return decode::decode(module_.text() + offset, module_.text_bytes - offset, module_.text_address + offset, in) ==
           decode::DecodeStatus::kOk;
  }

  void follow() {
    while (!pending_.empty()) {
      const uint64_t address = pending_.back();
      pending_.pop_back();
      follow_path(address - module_.text_address);
    }
  }

  void follow_path(uint64_t offset) {
    while (offset < module_.text_bytes && !starts_[offset]) {
      Instruction in;
      if (!decode_at(offset, in)) return;
      starts_[offset] = true;
      note_addresses(in);
      switch (in.mnemonic) {
        case Mnemonic::kJmp:
          push(static_cast<uint64_t>(in.imm));
          return;
        case Mnemonic::kJcc:
        case Mnemonic::kLoop:
        case Mnemonic::kLoope:
        case Mnemonic::kLoopne:
        case Mnemonic::kJrcxz:
        case Mnemonic::kCall:
          push(static_cast<uint64_t>(in.imm));
          break;
        case Mnemonic::kJmpIndirect:
        case Mnemonic::kRet:
        case Mnemonic::kUd0:
        case Mnemonic::kUd1:
        case Mnemonic::kUd2:
        case Mnemonic::kHlt:
          return;
        default:
          break;
      }
      offset += in.length;
    }
  }

  // Addresses of the text that the instruction computes, and of data that may be a table.
  void note_addresses(const Instruction& in) {
    if (in.mnemonic == Mnemonic::kLea && in.memory.base == decode::kRipBase) {
      const auto address = static_cast<uint64_t>(in.memory.disp);
      push(address);
      if (address % 4 == 0 && tables_.insert(address).second) new_tables_.push_back(address);
    }
    if (module_.position_independent) return;
    for (unsigned i = 0; i < in.operand_count; ++i) {
      if (in.operands[i].kind == OperandKind::kImmediate) push(static_cast<uint64_t>(in.imm));
    }
  }

  void read_table(uint64_t table) {
    const auto next = tables_.upper_bound(table);
    const uint64_t end = next == tables_.end() ? UINT64_MAX : *next;
    for (uint64_t at = table; at < end && rows_left_ != 0; at += 4, --rows_left_) {
      const uint8_t* bytes = module_.loaded(at, 4);
      if (bytes == nullptr) return;
      int32_t distance;
      memcpy(&distance, bytes, sizeof distance);
      const uint64_t target = table + static_cast<uint64_t>(int64_t{distance});
      if (!module_.in_text(target)) return;
      push(target);
    }
  }

  const Module& module_;
  std::vector<bool> starts_;
  std::vector<uint64_t> pending_;
  std::set<uint64_t> tables_;
  std::vector<uint64_t> new_tables_;
  // Rows of tables that may still be read: what overlaps is read more than once.
  uint64_t rows_left_;
};

}  // namespace

uint64_t keep_reachable(const Module& module, std::vector<uint32_t>& entry_points) {
  Walk walk(module);
  walk.run();
  return std::erase_if(entry_points, [&](uint32_t offset) { return !walk.reached(offset); });
}

}  // namespace phybin::image
