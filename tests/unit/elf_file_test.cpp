// ELF headers: real files, one damaged field at a time, and random damage under the sanitizers.
#include "worker/process/core/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "worker/process/core/vdso_image.h"

namespace phybin::process {
namespace {

constexpr uint64_t kPage = 4096;

// A program of two segments and an interpreter, as a linker would make it.
struct Sample {
  Elf64_Ehdr elf{};
  Elf64_Phdr segments[4]{};
  uint64_t file_size = 0x3000;

  Sample() {
    memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_ident[EI_DATA] = ELFDATA2LSB;
    elf.e_ident[EI_VERSION] = EV_CURRENT;
    elf.e_type = ET_EXEC;
    elf.e_machine = EM_X86_64;
    elf.e_phoff = sizeof elf;
    elf.e_phentsize = sizeof(Elf64_Phdr);
    elf.e_phnum = 4;
    elf.e_entry = 0x401010;
    segments[0] = {PT_INTERP, PF_R, 0x200, 0x400200, 0, 28, 28, 1};
    segments[1] = {PT_LOAD, PF_R | PF_X, 0, 0x400000, 0, 0x1800, 0x1800, kPage};
    segments[2] = {PT_LOAD, PF_R | PF_W, 0x1800, 0x402800, 0, 0x400, 0x2000, kPage};
    segments[3] = {PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16};
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out(sizeof elf + sizeof segments);
    memcpy(out.data(), &elf, sizeof elf);
    memcpy(out.data() + sizeof elf, segments, sizeof segments);
    return out;
  }
};

std::string parse(const std::vector<uint8_t>& bytes, uint64_t file_size, ElfLayout& layout) {
  ElfHeader header;
  std::string error = read_elf_header(bytes.data(), std::min<size_t>(bytes.size(), 512), file_size, header);
  if (!error.empty()) return error;
  if (header.table_offset > bytes.size()) return "table elsewhere";
  return read_elf_layout(header, bytes.data() + header.table_offset, bytes.size() - header.table_offset, file_size,
                         kPage, layout);
}

std::string parse(const Sample& sample) {
  ElfLayout layout;
  return parse(sample.bytes(), sample.file_size, layout);
}

TEST(ElfFile, Sample) {
  Sample sample;
  ElfLayout layout;
  ASSERT_EQ(parse(sample.bytes(), sample.file_size, layout), "");
  ASSERT_EQ(layout.segments.size(), 2u);
  EXPECT_EQ(layout.low, 0x400000u);
  EXPECT_EQ(layout.high, 0x405000u);
  EXPECT_EQ(layout.table_address, 0x400040u);
  EXPECT_TRUE(layout.has_interpreter);
  EXPECT_EQ(layout.interpreter_offset, 0x200u);
  EXPECT_FALSE(layout.executable_stack);
  EXPECT_EQ(layout.segments[0].protection, PROT_READ | PROT_EXEC);
  EXPECT_EQ(layout.segments[1].memory_size, 0x2000u);
}

using Damage = void (*)(Sample&);

TEST(ElfFile, EachFieldIsChecked) {
  const Damage damages[] = {
      [](Sample& s) { s.elf.e_ident[EI_CLASS] = ELFCLASS32; },
      [](Sample& s) { s.elf.e_ident[EI_DATA] = ELFDATA2MSB; },
      [](Sample& s) { s.elf.e_ident[EI_VERSION] = 0; },
      [](Sample& s) { s.elf.e_machine = EM_386; },
      [](Sample& s) { s.elf.e_type = ET_REL; },
      [](Sample& s) { s.elf.e_type = ET_CORE; },
      [](Sample& s) { s.elf.e_type = 0xffff; },
      [](Sample& s) { s.elf.e_phnum = 0; },
      [](Sample& s) { s.elf.e_phnum = 0xffff; },
      [](Sample& s) { s.elf.e_phentsize = 32; },
      [](Sample& s) { s.elf.e_phentsize = 0; },
      [](Sample& s) { s.elf.e_phoff = s.file_size; },
      [](Sample& s) { s.elf.e_phoff = UINT64_MAX - 8; },
      [](Sample& s) { s.elf.e_entry = 0; },
      [](Sample& s) { s.elf.e_entry = 0x405000; },
      [](Sample& s) { s.segments[0].p_filesz = 0; },
      [](Sample& s) { s.segments[0].p_filesz = 1; },
      [](Sample& s) { s.segments[0].p_filesz = 5000; },
      [](Sample& s) { s.segments[0].p_offset = s.file_size; },
      [](Sample& s) { s.segments[0].p_offset = UINT64_MAX; },
      [](Sample& s) { s.segments[1].p_filesz = 0x1801; },
      [](Sample& s) { s.segments[1].p_filesz = s.segments[1].p_memsz = UINT64_MAX; },
      [](Sample& s) { s.segments[1].p_offset = 0x2000; },
      [](Sample& s) { s.segments[1].p_offset = 1; },
      [](Sample& s) { s.segments[1].p_vaddr = UINT64_MAX - 0xfff; },
      [](Sample& s) { s.segments[1].p_vaddr = 1ull << 47; },
      [](Sample& s) { s.segments[1].p_align = 1ull << 60; },
      [](Sample& s) { s.segments[1].p_type = s.segments[2].p_type = PT_NULL; },
      [](Sample& s) { s.segments[2].p_vaddr = 0x400800; },
      [](Sample& s) { s.segments[2].p_vaddr = 0x300800; },
      [](Sample& s) { s.segments[2].p_memsz = 1ull << 47; },
      [](Sample& s) { s.segments[2].p_memsz = UINT64_MAX; },
      [](Sample& s) { s.file_size = 0x1a00; },
      [](Sample& s) { s.file_size = 100; },
      [](Sample& s) { s.file_size = 0; },
  };
  unsigned index = 0;
  for (Damage damage : damages) {
    Sample sample;
    damage(sample);
    EXPECT_NE(parse(sample), "") << "damage " << index;
    ++index;
  }
}

TEST(ElfFile, WhatLinuxTolerates) {
  const Damage harmless[] = {
      [](Sample& s) { s.segments[1].p_align = 0; },       [](Sample& s) { s.segments[1].p_align = 1; },
      [](Sample& s) { s.segments[1].p_align = 4095; },    [](Sample& s) { s.segments[1].p_align = 0x200000; },
      [](Sample& s) { s.segments[2].p_memsz = 0x400; },   [](Sample& s) { s.segments[3].p_type = 0x6474ffff; },
      [](Sample& s) { s.segments[2].p_filesz = 0; },      [](Sample& s) { s.elf.e_ident[EI_OSABI] = ELFOSABI_LINUX; },
      [](Sample& s) { s.elf.e_shoff = UINT64_MAX; },      [](Sample& s) { s.elf.e_type = ET_DYN; },
      [](Sample& s) { s.segments[1].p_paddr = 0x12345; },
  };
  for (Damage change : harmless) {
    Sample sample;
    change(sample);
    EXPECT_EQ(parse(sample), "");
  }
}

TEST(ElfFile, TruncatedAnywhere) {
  Sample sample;
  auto whole = sample.bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<long>(size));
    ElfLayout layout;
    EXPECT_NE(parse(part, size, layout), "") << size;
  }
}

TEST(ElfFile, RandomDamage) {
  Sample sample;
  const auto whole = sample.bytes();
  uint64_t seed = 7;
  auto random = [&] {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
  };
  constexpr uint8_t kValues[] = {0, 1, 0x7f, 0x80, 0xff, 0x40};
  unsigned accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    auto bytes = whole;
    for (uint64_t count = 1 + random() % 4; count > 0; --count) {
      bytes[random() % bytes.size()] =
          random() % 2 ? kValues[random() % sizeof kValues] : static_cast<uint8_t>(random());
    }
    ElfLayout layout;
    if (!parse(bytes, sample.file_size, layout).empty()) continue;
    ++accepted;
    uint64_t end = 0;
    for (const Segment& segment : layout.segments) {
      ASSERT_LE(segment.file_size, segment.memory_size);
      ASSERT_LE(segment.file_offset + segment.file_size, sample.file_size);
      ASSERT_GE(segment.address, end);
      ASSERT_LE(segment.memory_size, kGuestAddressEnd);
      end = segment.address + segment.memory_size;
      ASSERT_LE(end, kGuestAddressEnd);
    }
    ASSERT_LT(layout.low, layout.high);
  }
  EXPECT_GT(accepted, 1000u);
}

TEST(ElfFile, RealPrograms) {
  for (const char* name : {"/bin/ls", "/proc/self/exe", "/lib64/ld-linux-x86-64.so.2"}) {
    std::ifstream file(name, std::ios::binary);
    if (!file) continue;
    std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (classify(bytes.data(), bytes.size()) != FileKind::kX64) continue;
    ElfLayout layout;
    EXPECT_EQ(parse(bytes, bytes.size(), layout), "") << name;
    EXPECT_NE(layout.table_address, 0u);
  }
}

TEST(ElfFile, Kinds) {
  auto kind = [](std::string_view text) {
    return classify(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  };
  EXPECT_EQ(kind(""), FileKind::kEmpty);
  EXPECT_EQ(kind("#!/bin/sh\n"), FileKind::kScript);
  EXPECT_EQ(kind("hello"), FileKind::kUnknown);
  EXPECT_EQ(kind("\x7f"
                 "ELF"),
            FileKind::kOtherElf);
  Sample sample;
  auto kind_of = [&] { return classify(sample.bytes().data(), sizeof(Elf64_Ehdr)); };
  EXPECT_EQ(kind_of(), FileKind::kX64);
  sample.elf.e_machine = EM_AARCH64;
  EXPECT_EQ(kind_of(), FileKind::kNative);
  sample.elf.e_machine = EM_386;
  EXPECT_EQ(kind_of(), FileKind::kOtherElf);
  EXPECT_EQ(describe_machine(sample.bytes().data(), 64), "an i386 program");
  sample.elf.e_machine = 0x1234;
  EXPECT_EQ(describe_machine(sample.bytes().data(), 64), "an ELF program for machine 4660");
}

TEST(ElfFile, ScriptLines) {
  ScriptLine line;
  auto read = [&](std::string_view text) { return read_script_line(text.data(), text.size(), line); };
  ASSERT_TRUE(read("#!/bin/sh\nrest"));
  EXPECT_EQ(line.interpreter, "/bin/sh");
  EXPECT_FALSE(line.has_argument);
  ASSERT_TRUE(read("#! \t/usr/bin/env  python3 -u \t\n"));
  EXPECT_EQ(line.interpreter, "/usr/bin/env");
  EXPECT_EQ(line.argument, "python3 -u");
  ASSERT_TRUE(read("#!/bin/sh"));
  EXPECT_FALSE(read("#!\n"));
  EXPECT_FALSE(read("#!   \n"));
  EXPECT_FALSE(read("#"));
  EXPECT_FALSE(read("#!/" + std::string(300, 'x') + "\n"));
  ASSERT_TRUE(read("#!/bin/x " + std::string(300, 'y') + "\n"));
  EXPECT_LT(line.argument.size(), 256u);
}

TEST(VdsoImage, IsALibraryWithTheNamesThatLibcLooksFor) {
  const std::span<const uint8_t> contents = vdso_image();
  const std::vector<uint8_t> image(contents.begin(), contents.end());
  ASSERT_LE(image.size(), kPage);
  ElfLayout layout;
  ASSERT_EQ(parse(image, image.size(), layout), "");
  std::string text(image.begin(), image.end());
  for (const char* name : {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time", "__vdso_getcpu", "LINUX_2.6",
                           "linux-vdso.so.1"}) {
    EXPECT_NE(text.find(std::string(name) + '\0'), std::string::npos) << name;
  }
  // Walk the dynamic section as libc does.
  Elf64_Ehdr elf;
  memcpy(&elf, image.data(), sizeof elf);
  Elf64_Phdr dynamic_header;
  memcpy(&dynamic_header, image.data() + elf.e_phoff + sizeof(Elf64_Phdr), sizeof dynamic_header);
  ASSERT_EQ(dynamic_header.p_type, static_cast<uint32_t>(PT_DYNAMIC));
  uint64_t table[64] = {};
  for (uint64_t at = dynamic_header.p_offset;; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, image.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag < 64) table[entry.d_tag] = entry.d_un.d_val;
  }
  uint32_t chains;
  memcpy(&chains, image.data() + table[DT_HASH] + 4, sizeof chains);
  EXPECT_EQ(chains, 6u);
  for (uint32_t i = 1; i < chains; ++i) {
    Elf64_Sym symbol;
    memcpy(&symbol, image.data() + table[DT_SYMTAB] + i * sizeof symbol, sizeof symbol);
    const uint8_t* code = image.data() + symbol.st_value;
    EXPECT_EQ(code[0], 0xb8);
    EXPECT_EQ(code[5], 0x0f);
    EXPECT_EQ(code[6], 0x05);
    EXPECT_EQ(code[7], 0xc3);
    EXPECT_EQ(strncmp(text.c_str() + table[DT_STRTAB] + symbol.st_name, "__vdso_", 7), 0);
  }
}

}  // namespace
}  // namespace phybin::process
