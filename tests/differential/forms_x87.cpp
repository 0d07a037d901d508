// Forms of the x87 (Intel SDM volume 2). FNSTENV and FNSAVE store instruction and data pointers, which are not
// compared and so cannot be tested by what they write to memory.
#include "tests/differential/form.h"

namespace phybin::difftest {
namespace {

std::string hex(unsigned byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// The eight operations of D8, DA, DC and DE.
void add_arithmetic(std::vector<Form>& forms) {
  static constexpr const char* kNames[8] = {"add", "mul", "com", "comp", "sub", "subr", "div", "divr"};
  for (unsigned op = 0; op < 8; op++) {
    const std::string name = kNames[op], digit = " /" + std::to_string(op);
    const std::string attributes = op == 2 || op == 3 ? "|cc=0123 hint=f80 s=x87\n" : "|hint=f80 s=x87\n";
    std::string table;
    table += "f" + name + "|D8" + digit + "|Md" + attributes;
    table += "f" + name + "|DC" + digit + "|Mq" + attributes;
    table += "fi" + name + "|DA" + digit + "|Md" + attributes;
    table += "fi" + name + "|DE" + digit + "|Mw" + attributes;
    table += "f" + name + "|D8 " + hex(0xc0 + 8 * op) + " +r|S0" + attributes;
    if (op != 2 && op != 3) {
      // With ST(i) as destination the reversed forms are the other way round.
      table += "f" + name + "_sti|DC " + hex(0xc0 + 8 * (op < 4 ? op : op ^ 1)) + " +r|S0" + attributes;
      table += "f" + name + "p|DE " + hex(0xc0 + 8 * (op < 4 ? op : op ^ 1)) + " +r|S0" + attributes;
    }
    parse_forms("x87", table, forms);
  }
}

}  // namespace

void add_x87_forms(std::vector<Form>& forms) {
  add_arithmetic(forms);
  parse_forms("x87", R"(
    fld | D9 /0 | Md | hint=f80 s=x87
    fst | D9 /2 | Md | hint=f80 s=x87
    fstp | D9 /3 | Md | hint=f80 s=x87
    fldcw | D9 /5 | Mw | hint=f80 s=x87 cc= noseq
    fnstcw | D9 /7 | Mw | hint=f80 s=x87 cc= noseq
    fld | D9 C0 +r | S0 | hint=f80 s=x87
    fxch | D9 C8 +r | S0 | hint=f80 s=x87
    fnop | D9 D0 || hint=f80 s=x87 cc=
    fchs | D9 E0 || hint=f80 s=x87
    fabs | D9 E1 || hint=f80 s=x87
    ftst | D9 E4 || hint=f80 s=x87 cc=0123
    fxam | D9 E5 || hint=f80 s=x87 cc=0123
    fld1 | D9 E8 || hint=f80 s=x87
    fldl2t | D9 E9 || hint=f80 s=x87
    fldl2e | D9 EA || hint=f80 s=x87
    fldpi | D9 EB || hint=f80 s=x87
    fldlg2 | D9 EC || hint=f80 s=x87
    fldln2 | D9 ED || hint=f80 s=x87
    fldz | D9 EE || hint=f80 s=x87
    fxtract | D9 F4 || hint=f80 s=x87
    fprem1 | D9 F5 || hint=f80 s=x87 cc=0123
    fdecstp | D9 F6 || hint=f80 s=x87
    fincstp | D9 F7 || hint=f80 s=x87
    fprem | D9 F8 || hint=f80 s=x87 cc=0123
    fsqrt | D9 FA || hint=f80 s=x87
    frndint | D9 FC || hint=f80 s=x87
    fscale | D9 FD || hint=f80 s=x87
    fcmovb | DA C0 +r | S0 | hint=f80 s=x87 r=C
    fcmove | DA C8 +r | S0 | hint=f80 s=x87 r=Z
    fcmovbe | DA D0 +r | S0 | hint=f80 s=x87 r=CZ
    fcmovu | DA D8 +r | S0 | hint=f80 s=x87 r=P
    fucompp | DA E9 || hint=f80 s=x87 cc=0123
    fild | DB /0 | Md | hint=f80 s=x87
    fisttp | DB /1 | Md | hint=f80 s=x87
    fist | DB /2 | Md | hint=f80 s=x87
    fistp | DB /3 | Md | hint=f80 s=x87
    fld | DB /5 | Mt | hint=f80 s=x87
    fstp | DB /7 | Mt | hint=f80 s=x87
    fcmovnb | DB C0 +r | S0 | hint=f80 s=x87 r=C
    fcmovne | DB C8 +r | S0 | hint=f80 s=x87 r=Z
    fcmovnbe | DB D0 +r | S0 | hint=f80 s=x87 r=CZ
    fcmovnu | DB D8 +r | S0 | hint=f80 s=x87 r=P
    fnclex | DB E2 || hint=f80 s=x87 cc=
    fninit | DB E3 || hint=f80 s=x87 cc=0123
    fucomi | DB E8 +r | S0 | hint=f80 s=x87 w=OSZAPC
    fcomi | DB F0 +r | S0 | hint=f80 s=x87 w=OSZAPC
    fld | DD /0 | Mq | hint=f80 s=x87
    fisttp | DD /1 | Mq | hint=f80 s=x87
    fst | DD /2 | Mq | hint=f80 s=x87
    fstp | DD /3 | Mq | hint=f80 s=x87
    fnstsw | DD /7 | Mw | hint=f80 s=x87 noseq
    ffree | DD C0 +r | S0 | hint=f80 s=x87 cc=
    fst | DD D0 +r | S0 | hint=f80 s=x87
    fstp | DD D8 +r | S0 | hint=f80 s=x87
    fucom | DD E0 +r | S0 | hint=f80 s=x87 cc=0123
    fucomp | DD E8 +r | S0 | hint=f80 s=x87 cc=0123
    fcompp | DE D9 || hint=f80 s=x87 cc=0123
    fild | DF /0 | Mw | hint=f80 s=x87
    fisttp | DF /1 | Mw | hint=f80 s=x87
    fist | DF /2 | Mw | hint=f80 s=x87
    fistp | DF /3 | Mw | hint=f80 s=x87
    fbld | DF /4 | Mt | hint=f80 s=x87 noseq
    fild | DF /5 | Mq | hint=f80 s=x87
    fbstp | DF /6 | Mt | hint=f80 s=x87
    fistp | DF /7 | Mq | hint=f80 s=x87
    fnstsw | DF E0 | ax | hint=f80 s=x87 noseq
    fucomip | DF E8 +r | S0 | hint=f80 s=x87 w=OSZAPC
    fcomip | DF F0 +r | S0 | hint=f80 s=x87 w=OSZAPC
    fwait | 9B || hint=f80 s=x87
  )",
              forms);
  parse_forms("x87_transcendental", R"(
    f2xm1 | D9 F0 || hint=f80 s=x87 approx intel cc=
    fyl2x | D9 F1 || hint=f80 s=x87 approx intel cc=
    fptan | D9 F2 || hint=f80 s=x87 approx intel cc=2
    fpatan | D9 F3 || hint=f80 s=x87 approx intel cc=
    fyl2xp1 | D9 F9 || hint=f80 s=x87 approx intel cc=
    fsincos | D9 FB || hint=f80 s=x87 approx intel cc=2
    fsin | D9 FE || hint=f80 s=x87 approx intel cc=2
    fcos | D9 FF || hint=f80 s=x87 approx intel cc=2
  )",
              forms);
}

}  // namespace phybin::difftest
