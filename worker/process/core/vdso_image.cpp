// The guest's vDSO, written by the compiler. See vdso_image.h; structures are those of the System V ABI and its GNU
// versioning.
#include "worker/process/core/vdso_image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace phybin::process {
namespace {

struct Function {
  std::string_view name;
  uint8_t number_low, number_high;  // x86_64 system call
};
constexpr Function kFunctions[] = {
    {"__vdso_clock_gettime", 228, 0}, {"__vdso_gettimeofday", 96, 0},  {"__vdso_time", 201, 0},
    {"__vdso_getcpu", 309 & 255, 1},  {"__vdso_clock_getres", 229, 0},
};
constexpr size_t kFunctionCount = sizeof kFunctions / sizeof kFunctions[0];
constexpr size_t kSymbolCount = kFunctionCount + 1;
constexpr size_t kFunctionSize = 16;

constexpr std::string_view kName = "linux-vdso.so.1";
constexpr std::string_view kVersion = "LINUX_2.6";

constexpr uint32_t elf_hash(std::string_view name) {
  uint32_t hash = 0;
  for (char c : name) {
    hash = (hash << 4) + static_cast<uint8_t>(c);
    uint32_t high = hash & 0xf0000000;
    hash ^= high >> 24;
    hash &= ~high;
  }
  return hash;
}

class Image {
 public:
  constexpr size_t size() const { return size_; }
  constexpr void align(size_t alignment) { size_ = (size_ + alignment - 1) / alignment * alignment; }
  template <typename T>
  constexpr size_t put(const T& value) {
    const size_t at = size_;
    size_ += sizeof value;
    set(at, value);
    return at;
  }
  template <typename T>
  constexpr void set(size_t at, const T& value) {
    const auto bytes = std::bit_cast<std::array<uint8_t, sizeof value>>(value);
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + at);
  }
  constexpr size_t put_text(std::string_view text) {
    const size_t at = size_;
    std::copy(text.begin(), text.end(), bytes_.begin() + at);
    size_ += text.size() + 1;
    return at;
  }
  constexpr const uint8_t* data() const { return bytes_.data(); }

 private:
  std::array<uint8_t, 1024> bytes_{};
  size_t size_ = 0;
};

// Elf64_Dyn without its union.
struct DynamicEntry {
  int64_t tag;
  uint64_t value;
};
static_assert(sizeof(DynamicEntry) == sizeof(Elf64_Dyn));

constexpr Image build() {
  Image out;
  out.put(Elf64_Ehdr{});
  const size_t headers = out.put(Elf64_Phdr{});
  out.put(Elf64_Phdr{});

  const size_t strings = out.size();
  out.put_text("");
  size_t names[kFunctionCount] = {};
  for (size_t i = 0; i < kFunctionCount; ++i) names[i] = out.put_text(kFunctions[i].name) - strings;
  const size_t soname = out.put_text(kName) - strings, version = out.put_text(kVersion) - strings;
  const size_t strings_size = out.size() - strings;

  out.align(16);
  const size_t code = out.size();
  for (const Function& function : kFunctions) {
    // mov eax, number; syscall; ret
    const std::array<uint8_t, kFunctionSize> text = {0xb8,
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
  const std::array<DynamicEntry, 10> entries = {{
      {DT_SONAME, soname},
      {DT_HASH, hash},
      {DT_STRTAB, strings},
      {DT_SYMTAB, symbols},
      {DT_STRSZ, strings_size},
      {DT_SYMENT, sizeof(Elf64_Sym)},
      {DT_VERSYM, versions},
      {DT_VERDEF, definitions},
      {DT_VERDEFNUM, 2},
      {DT_NULL, 0},
  }};
  out.put(entries);

  Elf64_Ehdr elf{};
  for (size_t i = 0; i < SELFMAG; ++i) elf.e_ident[i] = static_cast<uint8_t>(ELFMAG[i]);
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
  return out;
}

constexpr Image kImage = build();

}  // namespace

std::span<const uint8_t> vdso_image() { return {kImage.data(), kImage.size()}; }

}  // namespace phybin::process
