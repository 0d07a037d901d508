// The GNU assembler as the judge of the A64 encoders. A test emits an instruction and says its text, both from the
// same operands; at the end all texts are assembled at once and compared word by word. The methods that were called
// are kept, so that a test can prove that it left none of a header's methods out.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "worker/translator/emit/a64.h"

namespace phybin::a64 {

// Operand texts.
std::string r(bool is64, unsigned number);   // 31 is the zero register
std::string sp(bool is64, unsigned number);  // 31 is the stack pointer
std::string fp(Size size, unsigned number);  // b0, h0, s0, d0, q0
std::string v(bool q, Size size, unsigned number);
std::string lane(Size size, unsigned number, unsigned index);  // v0.s[1]
std::string name_of(Cond cond);
std::string name_of(Extend extend);
std::string name_of(Shift shift);

// Anything that can stand in an instruction's text. Kept out of line: the tests have thousands of them.
struct Operand {
  Operand(std::string s) : text(std::move(s)) {}
  Operand(const char* s);
  Operand(unsigned n);
  Operand(int n);
  Operand(uint64_t n);
  Operand(Cond cond);
  std::string text;
};

// "[a, b]"
std::string memory(std::initializer_list<Operand> operands);
inline std::string memory(const Operand& base) { return memory({base}); }
inline std::string memory(const Operand& base, const Operand& offset) { return memory({base, offset}); }

// Four different register numbers; going through step 0 to 31, each operand gets every number.
struct Registers {
  explicit Registers(unsigned step)
      : d(static_cast<uint8_t>(step)),
        n(static_cast<uint8_t>((step * 5 + 3) % 32)),
        m(static_cast<uint8_t>((step * 11 + 7) % 32)),
        a(static_cast<uint8_t>((step * 3 + 30) % 32)) {}
  uint8_t d, n, m, a;
};

class GnuAssembler {
 public:
  GnuAssembler() : assembler_(memory_, words_) {}

  // Between begin and end, the assembler is to emit one instruction; end says its text, "MNEMONIC a, b, c".
  Assembler& begin(const char* method);
  void end(const std::string& mnemonic, std::initializer_list<Operand> operands);

  // Assembles everything and reports the differences.
  void expect_equal();
  // Reports methods of worker/translator/emit/HEADER that were never called.
  void expect_covered(const std::string& header) const;

 private:
  Assembler::Memory memory_;
  FlatArray<uint32_t> words_;
  Assembler assembler_;
  std::vector<std::string> texts_;
  std::set<std::string> called_;
  std::string wrong_length_;
  uint32_t begin_ = 0;
};

// EXPECT_FORM(judge, method, (operands of the method), mnemonic, operands of the text...)
#define EXPECT_FORM(judge, method, operands, mnemonic, ...) \
  do {                                                      \
    (judge).begin(#method).method operands;                 \
    (judge).end(mnemonic, {__VA_ARGS__});                   \
  } while (false)

}  // namespace phybin::a64
