// Forms of MMX, SSE and SSE2 and of the later 128-bit extensions with legacy encodings (Intel SDM volume 2).
#include "tests/differential/form.h"

namespace phybin::difftest {
namespace {

// Instructions that exist for all four floating-point types: NP packed single, 66 packed double, F3 and F2 scalar.
void add_arithmetic(std::vector<Form>& forms) {
  static constexpr struct {
    const char* name;
    const char* opcode;
    bool operator_scalar;
  } kOperations[] = {{"sqrt", "51", true},   {"add", "58", true}, {"mul", "59", true},  {"sub", "5C", true},
                     {"min", "5D", true},    {"div", "5E", true}, {"max", "5F", true},  {"and", "54", false},
                     {"andn", "55", false},  {"or", "56", false}, {"xor", "57", false}, {"unpckl", "14", false},
                     {"unpckh", "15", false}};
  for (const auto& operation : kOperations) {
    const std::string name = operation.name, opcode = std::string("0F ") + operation.opcode + " /r|";
    parse_forms("sse", name + "ps|" + opcode + "Vx,Wx|hint=f32", forms);
    parse_forms("sse2", name + "pd|66 " + opcode + "Vx,Wx|hint=f64", forms);
    if (!operation.operator_scalar) continue;
    parse_forms("sse", name + "ss|F3 " + opcode + "Vx,Wd|hint=f32", forms);
    parse_forms("sse2", name + "sd|F2 " + opcode + "Vx,Wq|hint=f64", forms);
  }
}

struct IntegerOperation {
  const char* name;
  const char* opcode;
  const char* hint;
};

// 66 0F op is the XMM form, 0F op the MMX form.
constexpr IntegerOperation kIntegerOperations[] = {
    {"punpcklbw", "60", "i8"}, {"punpcklwd", "61", "i16"}, {"punpckldq", "62", "i32"}, {"packsswb", "63", "i16"},
    {"pcmpgtb", "64", "i8"},   {"pcmpgtw", "65", "i16"},   {"pcmpgtd", "66", "i32"},   {"packuswb", "67", "i16"},
    {"punpckhbw", "68", "i8"}, {"punpckhwd", "69", "i16"}, {"punpckhdq", "6A", "i32"}, {"packssdw", "6B", "i32"},
    {"pcmpeqb", "74", "i8"},   {"pcmpeqw", "75", "i16"},   {"pcmpeqd", "76", "i32"},   {"psrlw", "D1", "count"},
    {"psrld", "D2", "count"},  {"psrlq", "D3", "count"},   {"paddq", "D4", "i64"},     {"pmullw", "D5", "i16"},
    {"psubusb", "D8", "i8"},   {"psubusw", "D9", "i16"},   {"pminub", "DA", "i8"},     {"pand", "DB", "i64"},
    {"paddusb", "DC", "i8"},   {"paddusw", "DD", "i16"},   {"pmaxub", "DE", "i8"},     {"pandn", "DF", "i64"},
    {"pavgb", "E0", "i8"},     {"psraw", "E1", "count"},   {"psrad", "E2", "count"},   {"pavgw", "E3", "i16"},
    {"pmulhuw", "E4", "i16"},  {"pmulhw", "E5", "i16"},    {"psubsb", "E8", "i8"},     {"psubsw", "E9", "i16"},
    {"pminsw", "EA", "i16"},   {"por", "EB", "i64"},       {"paddsb", "EC", "i8"},     {"paddsw", "ED", "i16"},
    {"pmaxsw", "EE", "i16"},   {"pxor", "EF", "i64"},      {"psllw", "F1", "count"},   {"pslld", "F2", "count"},
    {"psllq", "F3", "count"},  {"pmuludq", "F4", "i32"},   {"pmaddwd", "F5", "i16"},   {"psadbw", "F6", "i8"},
    {"psubb", "F8", "i8"},     {"psubw", "F9", "i16"},     {"psubd", "FA", "i32"},     {"psubq", "FB", "i64"},
    {"paddb", "FC", "i8"},     {"paddw", "FD", "i16"},     {"paddd", "FE", "i32"},
};

constexpr IntegerOperation kSsse3Operations[] = {
    {"pshufb", "00", "i8"},    {"phaddw", "01", "i16"}, {"phaddd", "02", "i32"}, {"phaddsw", "03", "i16"},
    {"pmaddubsw", "04", "i8"}, {"phsubw", "05", "i16"}, {"phsubd", "06", "i32"}, {"phsubsw", "07", "i16"},
    {"psignb", "08", "i8"},    {"psignw", "09", "i16"}, {"psignd", "0A", "i32"}, {"pmulhrsw", "0B", "i16"},
    {"pabsb", "1C", "i8"},     {"pabsw", "1D", "i16"},  {"pabsd", "1E", "i32"},
};

void add_integer(std::vector<Form>& forms) {
  for (const auto& operation : kIntegerOperations) {
    const std::string name = operation.name;
    const std::string opcode = std::string("0F ") + operation.opcode + " /r|",
                      hint = std::string("hint=") + operation.hint;
    parse_forms("sse2", name + "|66 " + opcode + "Vx,Wx|" + hint, forms);
    // The low unpack instructions of MMX read 32 bits of memory.
    const bool low = name.starts_with("punpckl");
    parse_forms("mmx", name + "|" + opcode + (low ? "Pq,Qd|" : "Pq,Qq|") + hint, forms);
  }
  for (const auto& operation : kSsse3Operations) {
    const std::string opcode = std::string("0F 38 ") + operation.opcode + " /r|",
                      hint = std::string("hint=") + operation.hint;
    parse_forms("ssse3", operation.name + ("|66 " + opcode) + "Vx,Wx|" + hint, forms);
    parse_forms("ssse3_mmx", operation.name + ("|" + opcode) + "Pq,Qq|" + hint, forms);
  }
}

}  // namespace

void add_sse_forms(std::vector<Form>& forms) {
  add_arithmetic(forms);
  add_integer(forms);
  parse_forms("sse", R"(
    movups | 0F 10 /r | Vx,Wx | unaligned
    movups | 0F 11 /r | Wx,Vx | unaligned
    movss | F3 0F 10 /r | Vx,Wd
    movss | F3 0F 11 /r | Wd,Vx
    movlps | 0F 12 /r | Vx,Mq
    movhlps | 0F 12 /r | Vx,Ux
    movlps | 0F 13 /r | Mq,Vx
    movhps | 0F 16 /r | Vx,Mq
    movlhps | 0F 16 /r | Vx,Ux
    movhps | 0F 17 /r | Mq,Vx
    movaps | 0F 28 /r | Vx,Wx
    movaps | 0F 29 /r | Wx,Vx
    movntps | 0F 2B /r | Mx,Vx
    cvtsi2ss | F3 0F 2A /r | Vx,Ey
    cvttss2si | F3 0F 2C /r | Gy,Wd | hint=f32
    cvtss2si | F3 0F 2D /r | Gy,Wd | hint=f32
    ucomiss | 0F 2E /r | Vx,Wd | hint=f32 w=OSZAPC
    comiss | 0F 2F /r | Vx,Wd | hint=f32 w=OSZAPC
    movmskps | 0F 50 /r | Gd,Ux
    rsqrtps | 0F 52 /r | Vx,Wx | hint=f32 approx
    rsqrtss | F3 0F 52 /r | Vx,Wd | hint=f32 approx
    rcpps | 0F 53 /r | Vx,Wx | hint=f32 approx
    rcpss | F3 0F 53 /r | Vx,Wd | hint=f32 approx
    cmpps | 0F C2 /r | Vx,Wx,Ib | hint=f32 imm=7
    cmpss | F3 0F C2 /r | Vx,Wd,Ib | hint=f32 imm=7
    shufps | 0F C6 /r | Vx,Wx,Ib
    ldmxcsr | 0F AE /2 | Md | s=load_mxcsr noseq
    stmxcsr | 0F AE /3 | Md | noseq
  )",
              forms);
  parse_forms("sse2", R"(
    movupd | 66 0F 10 /r | Vx,Wx | unaligned
    movupd | 66 0F 11 /r | Wx,Vx | unaligned
    movsd | F2 0F 10 /r | Vx,Wq
    movsd | F2 0F 11 /r | Wq,Vx
    movlpd | 66 0F 12 /r | Vx,Mq
    movlpd | 66 0F 13 /r | Mq,Vx
    movhpd | 66 0F 16 /r | Vx,Mq
    movhpd | 66 0F 17 /r | Mq,Vx
    movapd | 66 0F 28 /r | Vx,Wx
    movapd | 66 0F 29 /r | Wx,Vx
    movntpd | 66 0F 2B /r | Mx,Vx
    cvtsi2sd | F2 0F 2A /r | Vx,Ey
    cvttsd2si | F2 0F 2C /r | Gy,Wq | hint=f64
    cvtsd2si | F2 0F 2D /r | Gy,Wq | hint=f64
    ucomisd | 66 0F 2E /r | Vx,Wq | hint=f64 w=OSZAPC
    comisd | 66 0F 2F /r | Vx,Wq | hint=f64 w=OSZAPC
    movmskpd | 66 0F 50 /r | Gd,Ux
    cvtps2pd | 0F 5A /r | Vx,Wq | hint=f32
    cvtpd2ps | 66 0F 5A /r | Vx,Wx | hint=f64
    cvtss2sd | F3 0F 5A /r | Vx,Wd | hint=f32
    cvtsd2ss | F2 0F 5A /r | Vx,Wq | hint=f64
    cvtdq2ps | 0F 5B /r | Vx,Wx | hint=i32
    cvtps2dq | 66 0F 5B /r | Vx,Wx | hint=f32
    cvttps2dq | F3 0F 5B /r | Vx,Wx | hint=f32
    cvtdq2pd | F3 0F E6 /r | Vx,Wq | hint=i32
    cvttpd2dq | 66 0F E6 /r | Vx,Wx | hint=f64
    cvtpd2dq | F2 0F E6 /r | Vx,Wx | hint=f64
    cmppd | 66 0F C2 /r | Vx,Wx,Ib | hint=f64 imm=7
    cmpsd | F2 0F C2 /r | Vx,Wq,Ib | hint=f64 imm=7
    shufpd | 66 0F C6 /r | Vx,Wx,Ib
    punpcklqdq | 66 0F 6C /r | Vx,Wx
    punpckhqdq | 66 0F 6D /r | Vx,Wx
    movd | 66 0F 6E /r | Vx,Ey
    movd | 66 0F 7E /r | Ey,Vx
    movq | F3 0F 7E /r | Vx,Wq
    movq | 66 0F D6 /r | Wq,Vx
    movdqa | 66 0F 6F /r | Vx,Wx
    movdqa | 66 0F 7F /r | Wx,Vx
    movdqu | F3 0F 6F /r | Vx,Wx | unaligned
    movdqu | F3 0F 7F /r | Wx,Vx | unaligned
    movntdq | 66 0F E7 /r | Mx,Vx
    pshufd | 66 0F 70 /r | Vx,Wx,Ib
    pshufhw | F3 0F 70 /r | Vx,Wx,Ib
    pshuflw | F2 0F 70 /r | Vx,Wx,Ib
    psrlw | 66 0F 71 /2 | Ux,Ib | imm=31
    psraw | 66 0F 71 /4 | Ux,Ib | imm=31
    psllw | 66 0F 71 /6 | Ux,Ib | imm=31
    psrld | 66 0F 72 /2 | Ux,Ib | imm=63
    psrad | 66 0F 72 /4 | Ux,Ib | imm=63
    pslld | 66 0F 72 /6 | Ux,Ib | imm=63
    psrlq | 66 0F 73 /2 | Ux,Ib | imm=127
    psrldq | 66 0F 73 /3 | Ux,Ib | imm=31
    psllq | 66 0F 73 /6 | Ux,Ib | imm=127
    pslldq | 66 0F 73 /7 | Ux,Ib | imm=31
    pinsrw | 66 0F C4 /r | Vx,Rd,Ib
    pinsrw | 66 0F C4 /r | Vx,Mw,Ib
    pextrw | 66 0F C5 /r | Gd,Ux,Ib
    pmovmskb | 66 0F D7 /r | Gd,Ux
    maskmovdqu | 66 0F F7 /r | Vx,Ux | s=mask_move noseq
  )",
              forms);
  parse_forms("mmx", R"(
    movd | 0F 6E /r | Pq,Ey
    movd | 0F 7E /r | Ey,Pq
    movq | 0F 6F /r | Pq,Qq
    movq | 0F 7F /r | Qq,Pq
    movntq | 0F E7 /r | Mq,Pq
    pshufw | 0F 70 /r | Pq,Qq,Ib
    psrlw | 0F 71 /2 | Nq,Ib | imm=31
    psraw | 0F 71 /4 | Nq,Ib | imm=31
    psllw | 0F 71 /6 | Nq,Ib | imm=31
    psrld | 0F 72 /2 | Nq,Ib | imm=63
    psrad | 0F 72 /4 | Nq,Ib | imm=63
    pslld | 0F 72 /6 | Nq,Ib | imm=63
    psrlq | 0F 73 /2 | Nq,Ib | imm=127
    psllq | 0F 73 /6 | Nq,Ib | imm=127
    pinsrw | 0F C4 /r | Pq,Rd,Ib
    pinsrw | 0F C4 /r | Pq,Mw,Ib
    pextrw | 0F C5 /r | Gd,Nq,Ib
    pmovmskb | 0F D7 /r | Gd,Nq
    maskmovq | 0F F7 /r | Pq,Nq | s=mask_move noseq
    movq2dq | F3 0F D6 /r | Vx,Nq
    movdq2q | F2 0F D6 /r | Pq,Ux
    cvtpi2ps | 0F 2A /r | Vx,Qq | hint=i32
    cvttps2pi | 0F 2C /r | Pq,Wq | hint=f32
    cvtps2pi | 0F 2D /r | Pq,Wq | hint=f32
    cvtpi2pd | 66 0F 2A /r | Vx,Qq | hint=i32
    cvttpd2pi | 66 0F 2C /r | Pq,Wx | hint=f64
    cvtpd2pi | 66 0F 2D /r | Pq,Wx | hint=f64
    emms | 0F 77 || s=x87
  )",
              forms);
  parse_forms("sse3", R"(
    addsubps | F2 0F D0 /r | Vx,Wx | hint=f32
    addsubpd | 66 0F D0 /r | Vx,Wx | hint=f64
    haddps | F2 0F 7C /r | Vx,Wx | hint=f32
    haddpd | 66 0F 7C /r | Vx,Wx | hint=f64
    hsubps | F2 0F 7D /r | Vx,Wx | hint=f32
    hsubpd | 66 0F 7D /r | Vx,Wx | hint=f64
    movshdup | F3 0F 16 /r | Vx,Wx
    movsldup | F3 0F 12 /r | Vx,Wx
    movddup | F2 0F 12 /r | Vx,Wq
    lddqu | F2 0F F0 /r | Vx,Mx | unaligned
  )",
              forms);
  parse_forms("ssse3", "palignr | 66 0F 3A 0F /r | Vx,Wx,Ib | imm=63", forms);
  parse_forms("ssse3_mmx", "palignr | 0F 3A 0F /r | Pq,Qq,Ib | imm=31", forms);
  parse_forms("sse41", R"(
    pblendvb | 66 0F 38 10 /r | Vx,Wx
    blendvps | 66 0F 38 14 /r | Vx,Wx
    blendvpd | 66 0F 38 15 /r | Vx,Wx
    ptest | 66 0F 38 17 /r | Vx,Wx | w=OSZAPC
    pmovsxbw | 66 0F 38 20 /r | Vx,Wq | hint=i8
    pmovsxbd | 66 0F 38 21 /r | Vx,Wd | hint=i8
    pmovsxbq | 66 0F 38 22 /r | Vx,Ww | hint=i8
    pmovsxwd | 66 0F 38 23 /r | Vx,Wq | hint=i16
    pmovsxwq | 66 0F 38 24 /r | Vx,Wd | hint=i16
    pmovsxdq | 66 0F 38 25 /r | Vx,Wq | hint=i32
    pmuldq | 66 0F 38 28 /r | Vx,Wx | hint=i32
    pcmpeqq | 66 0F 38 29 /r | Vx,Wx | hint=i64
    movntdqa | 66 0F 38 2A /r | Vx,Mx
    packusdw | 66 0F 38 2B /r | Vx,Wx | hint=i32
    pmovzxbw | 66 0F 38 30 /r | Vx,Wq | hint=i8
    pmovzxbd | 66 0F 38 31 /r | Vx,Wd | hint=i8
    pmovzxbq | 66 0F 38 32 /r | Vx,Ww | hint=i8
    pmovzxwd | 66 0F 38 33 /r | Vx,Wq | hint=i16
    pmovzxwq | 66 0F 38 34 /r | Vx,Wd | hint=i16
    pmovzxdq | 66 0F 38 35 /r | Vx,Wq | hint=i32
    pminsb | 66 0F 38 38 /r | Vx,Wx | hint=i8
    pminsd | 66 0F 38 39 /r | Vx,Wx | hint=i32
    pminuw | 66 0F 38 3A /r | Vx,Wx | hint=i16
    pminud | 66 0F 38 3B /r | Vx,Wx | hint=i32
    pmaxsb | 66 0F 38 3C /r | Vx,Wx | hint=i8
    pmaxsd | 66 0F 38 3D /r | Vx,Wx | hint=i32
    pmaxuw | 66 0F 38 3E /r | Vx,Wx | hint=i16
    pmaxud | 66 0F 38 3F /r | Vx,Wx | hint=i32
    pmulld | 66 0F 38 40 /r | Vx,Wx | hint=i32
    phminposuw | 66 0F 38 41 /r | Vx,Wx | hint=i16
    roundps | 66 0F 3A 08 /r | Vx,Wx,Ib | hint=f32 imm=15
    roundpd | 66 0F 3A 09 /r | Vx,Wx,Ib | hint=f64 imm=15
    roundss | 66 0F 3A 0A /r | Vx,Wd,Ib | hint=f32 imm=15
    roundsd | 66 0F 3A 0B /r | Vx,Wq,Ib | hint=f64 imm=15
    blendps | 66 0F 3A 0C /r | Vx,Wx,Ib | imm=15
    blendpd | 66 0F 3A 0D /r | Vx,Wx,Ib | imm=3
    pblendw | 66 0F 3A 0E /r | Vx,Wx,Ib
    pextrb | 66 0F 3A 14 /r | Rd,Vx,Ib
    pextrb | 66 0F 3A 14 /r | Mb,Vx,Ib
    pextrw | 66 0F 3A 15 /r | Rd,Vx,Ib
    pextrw | 66 0F 3A 15 /r | Mw,Vx,Ib
    pextrd | 66 0F 3A 16 /r | Ey,Vx,Ib
    extractps | 66 0F 3A 17 /r | Ed,Vx,Ib
    pinsrb | 66 0F 3A 20 /r | Vx,Rd,Ib
    pinsrb | 66 0F 3A 20 /r | Vx,Mb,Ib
    insertps | 66 0F 3A 21 /r | Vx,Wd,Ib
    pinsrd | 66 0F 3A 22 /r | Vx,Ey,Ib
    dpps | 66 0F 3A 40 /r | Vx,Wx,Ib | hint=f32 intel
    dppd | 66 0F 3A 41 /r | Vx,Wx,Ib | hint=f64 intel
    mpsadbw | 66 0F 3A 42 /r | Vx,Wx,Ib | hint=i8
  )",
              forms);
  parse_forms("sse42", R"(
    pcmpgtq | 66 0F 38 37 /r | Vx,Wx | hint=i64
    pcmpestrm | 66 0F 3A 60 /r | Vx,Wx,Ib,ry | hint=i8 imm=127 unaligned w=OSZAPC
    pcmpestri | 66 0F 3A 61 /r | Vx,Wx,Ib,ry | hint=i8 imm=127 unaligned w=OSZAPC
    pcmpistrm | 66 0F 3A 62 /r | Vx,Wx,Ib | hint=i8 imm=127 unaligned w=OSZAPC
    pcmpistri | 66 0F 3A 63 /r | Vx,Wx,Ib | hint=i8 imm=127 unaligned w=OSZAPC
  )",
              forms);
  parse_forms("aes", R"(
    aesimc | 66 0F 38 DB /r | Vx,Wx
    aesenc | 66 0F 38 DC /r | Vx,Wx
    aesenclast | 66 0F 38 DD /r | Vx,Wx
    aesdec | 66 0F 38 DE /r | Vx,Wx
    aesdeclast | 66 0F 38 DF /r | Vx,Wx
    aeskeygenassist | 66 0F 3A DF /r | Vx,Wx,Ib
  )",
              forms);
  parse_forms("pclmul", "pclmulqdq | 66 0F 3A 44 /r | Vx,Wx,Ib | hint=i64 imm=17", forms);
  parse_forms("sha", R"(
    sha1nexte | 0F 38 C8 /r | Vx,Wx | intelmemory
    sha1msg1 | 0F 38 C9 /r | Vx,Wx | intelmemory
    sha1msg2 | 0F 38 CA /r | Vx,Wx | intelmemory
    sha256rnds2 | 0F 38 CB /r | Vx,Wx | intelmemory
    sha256msg1 | 0F 38 CC /r | Vx,Wx | intelmemory
    sha256msg2 | 0F 38 CD /r | Vx,Wx | intelmemory
    sha1rnds4 | 0F 3A CC /r | Vx,Wx,Ib | imm=3 intelmemory
  )",
              forms);
  parse_forms("popcnt", R"(
    popcnt | F3 0F B8 /r | Gv,Ev | w=OSZAPC
    tzcnt | F3 0F BC /r | Gv,Ev | w=ZC u=OSAP
    lzcnt | F3 0F BD /r | Gv,Ev | w=ZC u=OSAP
    movbe | 0F 38 F0 /r | Gv,Mv
    movbe | 0F 38 F1 /r | Mv,Gv
    crc32 | F2 0F 38 F0 /r | Gy,Eb
    crc32 | F2 0F 38 F1 /r | Gd,Ev
  )",
              forms);
  parse_forms("bmi", R"(
    andn | VEX.LZ.0F38 F2 /r | Gy,By,Ey | w=OSZC u=AP
    blsr | VEX.LZ.0F38 F3 /1 | By,Ey | w=OSZC u=AP
    blsmsk | VEX.LZ.0F38 F3 /2 | By,Ey | w=OSZC u=AP
    blsi | VEX.LZ.0F38 F3 /3 | By,Ey | w=OSZC u=AP
    bextr | VEX.LZ.0F38 F7 /r | Gy,Ey,By | w=OZC u=SAP
    bzhi | VEX.LZ.0F38 F5 /r | Gy,Ey,By | w=OSZC u=AP
    pdep | VEX.LZ.F2.0F38 F5 /r | Gy,By,Ey
    pext | VEX.LZ.F3.0F38 F5 /r | Gy,By,Ey
    mulx | VEX.LZ.F2.0F38 F6 /r | Gy,By,Ey
    rorx | VEX.LZ.F2.0F3A F0 /r | Gy,Ey,Ib
    sarx | VEX.LZ.F3.0F38 F7 /r | Gy,Ey,By
    shlx | VEX.LZ.66.0F38 F7 /r | Gy,Ey,By
    shrx | VEX.LZ.F2.0F38 F7 /r | Gy,Ey,By
  )",
              forms);
}

}  // namespace phybin::difftest
