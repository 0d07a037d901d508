// Writes the guest's vDSO. See vdso_image.h; structures are those of the System V ABI and its GNU versioning.
#include "worker/process/core/vdso_image.h"

#include <elf.h>

#include <cstring>

namespace phybin::process {
namespace {

struct Function {
  const char* name;
  uint8_t number_low, number_high;  // x86_64 system call
};
constexpr Function kFunctions[] = {
    {"__vdso_clock_gettime", 228, 0}, {"__vdso_gettimeofday", 96, 0},  {"__vdso_time", 201, 0},
    {"__vdso_getcpu", 309 & 255, 1},  {"__vdso_clock_getres", 229, 0},
};
constexpr size_t kFunctionCount = sizeof kFunctions / sizeof kFunctions[0];
constexpr size_t kSymbolCount = kFunctionCount + 1;
constexpr size_t kFunctionSize = 16;

constexpr const char* kName = "linux-vdso.so.1";
constexpr const char* kVersion = "LINUX_2.6";

uint32_t elf_hash(const char* name) {
  uint32_t hash = 0;
  for (; *name; ++name) {
    hash = (hash << 4) + static_cast<uint8_t>(*name);
    uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

class Writer {
 public:
  size_t size() const { return bytes_.size(); }
  void align(size_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment); }
  template <typename T>
  size_t put(const T& value) {
    size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    memcpy(bytes_.data() + at, &value, sizeof value);
    return at;
  }
  template <typename T>
  void set(size_t at, const T& value) {
    memcpy(bytes_.data() + at, &value, sizeof value);
  }
  size_t put_text(const char* text) {
    size_t at = bytes_.size();
    bytes_.insert(bytes_.end(), text, text + strlen(text) + 1);
    return at;
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint8_t> build_vdso_image() {
  Writer out;
  out.put(Elf64_Ehdr{});
  const size_t headers = out.put(Elf64_Phdr{});
  out.put(Elf64_Phdr{});

  const size_t strings = out.size();
  out.put_text("");
  size_t names[kFunctionCount];
  for (size_t i = 0; i < kFunctionCount; ++i) names[i] = out.put_text(kFunctions[i].name) - strings;
  const size_t soname = out.put_text(kName) - strings, version = out.put_text(kVersion) - strings;
  const size_t strings_size = out.size() - strings;

  out.align(16);
  const size_t code = out.size();
  for (const Function& function : kFunctions) {
    // mov eax, number; syscall; ret
    const uint8_t text[kFunctionSize] = {0xb8,
                                         function.number_low,
                                         function.number_high,
                                         0,
                                         0,
                                         0x0f,
                                         0x05,
                                         0xc3,
                                         0xcc,
                                         0xcc,
                                         0xcc,
                                         0xcc,
                                         0xcc,
                                         0xcc,
                                         0xcc,
                                         0xcc};
    out.put(text);
  }

  const size_t symbols = out.put(Elf64_Sym{});
  for (size_t i = 0; i < kFunctionCount; ++i) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<uint32_t>(names[i]);
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = code + i * kFunctionSize;
    symbol.st_size = 8;
    out.put(symbol);
  }

  // One bucket: a chain through all symbols.
  const size_t hash = out.size();
  out.put(uint32_t{1});
  out.put(uint32_t{kSymbolCount});
  out.put(uint32_t{1});
  out.put(uint32_t{0});
  for (size_t i = 1; i < kSymbolCount; ++i) out.put(static_cast<uint32_t>(i + 1 < kSymbolCount ? i + 1 : 0));

  const size_t versions = out.size();
  out.put(uint16_t{0});
  for (size_t i = 1; i < kSymbolCount; ++i) out.put(uint16_t{2});
  out.align(8);
  const size_t definitions = out.size();
  for (unsigned index = 1; index <= 2; ++index) {
    Elf64_Verdef definition{};
    definition.vd_version = VER_DEF_CURRENT;
    definition.vd_flags = index == 1 ? VER_FLG_BASE : 0;
    definition.vd_ndx = static_cast<uint16_t>(index);
    definition.vd_cnt = 1;
    definition.vd_hash = elf_hash(index == 1 ? kName : kVersion);
    definition.vd_aux = sizeof(Elf64_Verdef);
    definition.vd_next = index == 1 ? sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux) : 0;
    out.put(definition);
    Elf64_Verdaux name{};
    name.vda_name = static_cast<uint32_t>(index == 1 ? soname : version);
    out.put(name);
  }

  out.align(8);
  const size_t dynamic = out.size();
  const Elf64_Dyn entries[] = {
      {DT_SONAME, {soname}},   {DT_HASH, {hash}},          {DT_STRTAB, {strings}},
      {DT_SYMTAB, {symbols}},  {DT_STRSZ, {strings_size}}, {DT_SYMENT, {sizeof(Elf64_Sym)}},
      {DT_VERSYM, {versions}}, {DT_VERDEF, {definitions}}, {DT_VERDEFNUM, {2}},
      {DT_NULL, {0}},
  };
  out.put(entries);

  Elf64_Ehdr elf{};
  memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.e_ident[EI_VERSION] = EV_CURRENT;
  elf.e_type = ET_DYN;
  elf.e_machine = EM_X86_64;
  elf.e_version = EV_CURRENT;
  elf.e_phoff = headers;
  elf.e_ehsize = sizeof(Elf64_Ehdr);
  elf.e_phentsize = sizeof(Elf64_Phdr);
  elf.e_phnum = 2;
  elf.e_entry = code;
  out.set(0, elf);
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_X;
  load.p_filesz = load.p_memsz = out.size();
  load.p_align = 4096;
  out.set(headers, load);
  Elf64_Phdr table{};
  table.p_type = PT_DYNAMIC;
  table.p_flags = PF_R;
  table.p_offset = table.p_vaddr = table.p_paddr = dynamic;
  table.p_filesz = table.p_memsz = sizeof entries;
  table.p_align = 8;
  out.set(headers + sizeof load, table);
  return out.take();
}

}  // namespace phybin::process
