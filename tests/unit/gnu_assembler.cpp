// See gnu_assembler.h.
#include "tests/unit/gnu_assembler.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace phybin::a64 {

std::string r(bool is64, unsigned number) {
  return (is64 ? "x" : "w") + (number == 31 ? std::string("zr") : std::to_string(number));
}
std::string sp(bool is64, unsigned number) { return number == 31 ? is64 ? "sp" : "wsp" : r(is64, number); }
std::string fp(Size size, unsigned number) { return "bhsdq"[size.log2] + std::to_string(number); }
std::string v(bool q, Size size, unsigned number) {
  return "v" + std::to_string(number) + "." + std::to_string((q ? 16 : 8) >> size.log2) + "bhsdq"[size.log2];
}
std::string lane(Size size, unsigned number, unsigned index) {
  return "v" + std::to_string(number) + "." + "bhsd"[size.log2] + "[" + std::to_string(index) + "]";
}
std::string name_of(Cond cond) {
  static constexpr const char* kNames[] = {"eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc",
                                           "hi", "ls", "ge", "lt", "gt", "le", "al"};
  return kNames[static_cast<int>(cond)];
}
std::string name_of(Extend extend) {
  static constexpr const char* kNames[] = {"uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"};
  return kNames[static_cast<int>(extend)];
}
std::string name_of(Shift shift) {
  static constexpr const char* kNames[] = {"lsl", "lsr", "asr", "ror"};
  return kNames[shift];
}

Operand::Operand(const char* s) : text(s) {}
Operand::Operand(unsigned n) : text(std::to_string(n)) {}
Operand::Operand(int n) : text(std::to_string(n)) {}
Operand::Operand(uint64_t n) : text(std::to_string(n)) {}
Operand::Operand(Cond cond) : text(name_of(cond)) {}

namespace {

std::string joined(std::initializer_list<Operand> operands) {
  std::string text;
  for (const Operand& operand : operands) text += (text.empty() ? "" : ", ") + operand.text;
  return text;
}

#ifdef __aarch64__
const char kToolPrefix[] = "";
#else
const char kToolPrefix[] = "aarch64-linux-gnu-";
#endif

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string memory(std::initializer_list<Operand> operands) { return "[" + joined(operands) + "]"; }

Assembler& GnuAssembler::begin(const char* method) {
  called_.insert(method);
  assembler_.make_room();
  begin_ = assembler_.offset();
  return assembler_;
}

void GnuAssembler::end(const std::string& mnemonic, std::initializer_list<Operand> operands) {
  texts_.push_back(mnemonic + " " + joined(operands));
  if (assembler_.offset() != begin_ + 4) wrong_length_ += texts_.back() + "\n";
}

void GnuAssembler::expect_equal() {
  assembler_.finish();
  EXPECT_EQ(wrong_length_, "") << "not one word each";
  EXPECT_FALSE(assembler_.failed());
  std::string folder = testing::TempDir() + "/a64-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream source(folder + "/all.s");
  for (const std::string& text : texts_) source << text << '\n';
  source.close();
  const std::string tool = kToolPrefix;
  const std::string command = "cd " + folder + " && " + tool +
                              "as -W -march=armv8.5-a+crypto all.s -o all.o 2>errors && " + tool +
                              "objcopy -O binary all.o all.bin 2>>errors";
  const int status = system(command.c_str());
  const std::string errors = read_file(folder + "/errors");
  const std::string expected = read_file(folder + "/all.bin");
  std::filesystem::remove_all(folder);
  ASSERT_EQ(status, 0) << errors.substr(0, 2000);
  ASSERT_EQ(expected.size(), texts_.size() * 4);
  int shown = 0;
  for (uint32_t i = 0; i < texts_.size() && shown < 20; ++i) {
    uint32_t word = 0;
    for (unsigned byte = 0; byte < 4; ++byte)
      word |= uint32_t{static_cast<uint8_t>(expected[i * 4 + byte])} << 8 * byte;
    if (words_[i] == word) continue;
    ADD_FAILURE() << texts_[i] << std::hex << ": is 0x" << word << ", emitted 0x" << words_[i];
    ++shown;
  }
}

void GnuAssembler::expect_covered(const std::string& header) const {
  const std::string source = read_file(std::filesystem::path(PHYBIN_SOURCE_DIR) / "worker/translator/emit" / header);
  ASSERT_NE(source, "");
  std::istringstream lines(source.substr(0, source.find(" private:")));
  const std::string start = "  void ";
  const std::set<std::string> macro_parameters = {"name", "stem", "unscaled"};
  for (std::string text; std::getline(lines, text);) {
    if (!text.starts_with(start)) continue;
    const std::string method = text.substr(start.size(), text.find('(') - start.size());
    if (method.find("##") != std::string::npos || macro_parameters.contains(method)) continue;
    EXPECT_TRUE(called_.contains(method)) << header << ": " << method << " was never called";
  }
}

}  // namespace phybin::a64
