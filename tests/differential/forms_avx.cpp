// Forms with VEX encodings: AVX, AVX2, FMA, F16C (Intel SDM volume 2).
#include "tests/differential/form.h"

namespace phybin::difftest {
namespace {

std::string hex(unsigned byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

void add_arithmetic(std::vector<Form>& forms) {
  static constexpr struct {
    const char* name;
    const char* opcode;
    bool scalar;
  } kOperations[] = {{"vadd", "58", true}, {"vmul", "59", true},  {"vsub", "5C", true},     {"vmin", "5D", true},
                     {"vdiv", "5E", true}, {"vmax", "5F", true},  {"vand", "54", false},    {"vandn", "55", false},
                     {"vor", "56", false}, {"vxor", "57", false}, {"vunpckl", "14", false}, {"vunpckh", "15", false}};
  for (const auto& operation : kOperations) {
    const std::string name = operation.name, opcode = std::string("0F ") + operation.opcode + " /r|";
    parse_forms("avx", name + "ps|VEX.x." + opcode + "VL,HL,WL|hint=f32", forms);
    parse_forms("avx", name + "pd|VEX.x.66." + opcode + "VL,HL,WL|hint=f64", forms);
    if (!operation.scalar) continue;
    parse_forms("avx", name + "ss|VEX.LIG.F3." + opcode + "Vx,Hx,Wd|hint=f32", forms);
    parse_forms("avx", name + "sd|VEX.LIG.F2." + opcode + "Vx,Hx,Wq|hint=f64", forms);
  }
}

struct IntegerOperation {
  const char* name;
  const char* opcode;
  const char* hint;
};

// 66.0F, three operands.
constexpr IntegerOperation kOperations0f[] = {
    {"punpcklbw", "60", "i8"},   {"punpcklwd", "61", "i16"},  {"punpckldq", "62", "i32"}, {"packsswb", "63", "i16"},
    {"pcmpgtb", "64", "i8"},     {"pcmpgtw", "65", "i16"},    {"pcmpgtd", "66", "i32"},   {"packuswb", "67", "i16"},
    {"punpckhbw", "68", "i8"},   {"punpckhwd", "69", "i16"},  {"punpckhdq", "6A", "i32"}, {"packssdw", "6B", "i32"},
    {"punpcklqdq", "6C", "i64"}, {"punpckhqdq", "6D", "i64"}, {"pcmpeqb", "74", "i8"},    {"pcmpeqw", "75", "i16"},
    {"pcmpeqd", "76", "i32"},    {"paddq", "D4", "i64"},      {"pmullw", "D5", "i16"},    {"psubusb", "D8", "i8"},
    {"psubusw", "D9", "i16"},    {"pminub", "DA", "i8"},      {"pand", "DB", "i64"},      {"paddusb", "DC", "i8"},
    {"paddusw", "DD", "i16"},    {"pmaxub", "DE", "i8"},      {"pandn", "DF", "i64"},     {"pavgb", "E0", "i8"},
    {"pavgw", "E3", "i16"},      {"pmulhuw", "E4", "i16"},    {"pmulhw", "E5", "i16"},    {"psubsb", "E8", "i8"},
    {"psubsw", "E9", "i16"},     {"pminsw", "EA", "i16"},     {"por", "EB", "i64"},       {"paddsb", "EC", "i8"},
    {"paddsw", "ED", "i16"},     {"pmaxsw", "EE", "i16"},     {"pxor", "EF", "i64"},      {"pmuludq", "F4", "i32"},
    {"pmaddwd", "F5", "i16"},    {"psadbw", "F6", "i8"},      {"psubb", "F8", "i8"},      {"psubw", "F9", "i16"},
    {"psubd", "FA", "i32"},      {"psubq", "FB", "i64"},      {"paddb", "FC", "i8"},      {"paddw", "FD", "i16"},
    {"paddd", "FE", "i32"},
};

// 66.0F38, three operands.
constexpr IntegerOperation kOperations0f38[] = {
    {"pshufb", "00", "i8"},    {"phaddw", "01", "i16"},  {"phaddd", "02", "i32"},   {"phaddsw", "03", "i16"},
    {"pmaddubsw", "04", "i8"}, {"phsubw", "05", "i16"},  {"phsubd", "06", "i32"},   {"phsubsw", "07", "i16"},
    {"psignb", "08", "i8"},    {"psignw", "09", "i16"},  {"psignd", "0A", "i32"},   {"pmulhrsw", "0B", "i16"},
    {"pmuldq", "28", "i32"},   {"pcmpeqq", "29", "i64"}, {"packusdw", "2B", "i32"}, {"pcmpgtq", "37", "i64"},
    {"pminsb", "38", "i8"},    {"pminsd", "39", "i32"},  {"pminuw", "3A", "i16"},   {"pminud", "3B", "i32"},
    {"pmaxsb", "3C", "i8"},    {"pmaxsd", "3D", "i32"},  {"pmaxuw", "3E", "i16"},   {"pmaxud", "3F", "i32"},
    {"pmulld", "40", "i32"},
};

void add_integer(std::vector<Form>& forms) {
  auto add = [&](const IntegerOperation& operation, const char* map, const char* operands) {
    const std::string name = std::string("v") + operation.name,
                      rest = std::string(map) + operation.opcode + " /r|" + operands + "|hint=" + operation.hint;
    parse_forms("avx", name + "|VEX.128.66." + rest, forms);
    parse_forms("avx2", name + "|VEX.256.66." + rest, forms);
  };
  for (const auto& operation : kOperations0f) add(operation, "0F ", "VL,HL,WL");
  for (const auto& operation : kOperations0f38) add(operation, "0F38 ", "VL,HL,WL");
  static constexpr IntegerOperation kAbsolute[] = {
      {"pabsb", "1C", "i8"}, {"pabsw", "1D", "i16"}, {"pabsd", "1E", "i32"}};
  for (const auto& operation : kAbsolute) add(operation, "0F38 ", "VL,WL");
  static constexpr IntegerOperation kShifts[] = {
      {"psrlw", "D1", "count"}, {"psrld", "D2", "count"}, {"psrlq", "D3", "count"}, {"psraw", "E1", "count"},
      {"psrad", "E2", "count"}, {"psllw", "F1", "count"}, {"pslld", "F2", "count"}, {"psllq", "F3", "count"}};
  for (const auto& operation : kShifts) add(operation, "0F ", "VL,HL,Wx");
  static constexpr struct {
    IntegerOperation operation;
    const char* operands;
  } kExtensions[] = {{{"bw", "0", "i8"}, "VL,Wl"},  {{"bd", "1", "i8"}, "VL,Wm"},  {{"bq", "2", "i8"}, "VL,Wn"},
                     {{"wd", "3", "i16"}, "VL,Wl"}, {{"wq", "4", "i16"}, "VL,Wm"}, {{"dq", "5", "i32"}, "VL,Wl"}};
  for (const auto& extension : kExtensions) {
    const std::string kind = extension.operation.name, digit = extension.operation.opcode;
    add({("pmovsx" + kind).c_str(), ("2" + digit).c_str(), extension.operation.hint}, "0F38 ", extension.operands);
    add({("pmovzx" + kind).c_str(), ("3" + digit).c_str(), extension.operation.hint}, "0F38 ", extension.operands);
  }
  static constexpr struct {
    const char* name;
    const char* opcode;
  } kImmediate[] = {{"vpsrlw", "71 /2"}, {"vpsraw", "71 /4"}, {"vpsllw", "71 /6"}, {"vpsrld", "72 /2"},
                    {"vpsrad", "72 /4"}, {"vpslld", "72 /6"}, {"vpsrlq", "73 /2"}, {"vpsrldq", "73 /3"},
                    {"vpsllq", "73 /6"}, {"vpslldq", "73 /7"}};
  for (const auto& shift : kImmediate) {
    const std::string rest = std::string("66.0F ") + shift.opcode + "|HL,UL,Ib|imm=127";
    parse_forms("avx", shift.name + ("|VEX.128." + rest), forms);
    parse_forms("avx2", shift.name + ("|VEX.256." + rest), forms);
  }
}

void add_fma(std::vector<Form>& forms) {
  static constexpr struct {
    const char* name;
    uint8_t opcode;
    bool scalar;
  } kOperations[] = {{"vfmaddsub", 0x96, false}, {"vfmsubadd", 0x97, false}, {"vfmadd", 0x98, false},
                     {"vfmadd", 0x99, true},     {"vfmsub", 0x9a, false},    {"vfmsub", 0x9b, true},
                     {"vfnmadd", 0x9c, false},   {"vfnmadd", 0x9d, true},    {"vfnmsub", 0x9e, false},
                     {"vfnmsub", 0x9f, true}};
  static constexpr const char* kOrders[3] = {"132", "213", "231"};
  for (const auto& operation : kOperations) {
    for (unsigned order = 0; order < 3; order++) {
      const std::string name = std::string(operation.name) + kOrders[order];
      const std::string opcode = hex(operation.opcode + 0x10 * order) + " /r|";
      if (operation.scalar) {
        parse_forms("fma", name + "ss|VEX.LIG.66.0F38.W0 " + opcode + "Vx,Hx,Wd|hint=f32", forms);
        parse_forms("fma", name + "sd|VEX.LIG.66.0F38.W1 " + opcode + "Vx,Hx,Wq|hint=f64", forms);
      } else {
        parse_forms("fma", name + "ps|VEX.x.66.0F38.W0 " + opcode + "VL,HL,WL|hint=f32", forms);
        parse_forms("fma", name + "pd|VEX.x.66.0F38.W1 " + opcode + "VL,HL,WL|hint=f64", forms);
      }
    }
  }
}

}  // namespace

void add_avx_forms(std::vector<Form>& forms) {
  add_arithmetic(forms);
  add_integer(forms);
  add_fma(forms);
  parse_forms("avx", R"(
    vmovups | VEX.x.0F 10 /r | VL,WL
    vmovups | VEX.x.0F 11 /r | WL,VL
    vmovupd | VEX.x.66.0F 10 /r | VL,WL
    vmovupd | VEX.x.66.0F 11 /r | WL,VL
    vmovss | VEX.LIG.F3.0F 10 /r | Vx,Md
    vmovss | VEX.LIG.F3.0F 10 /r | Vx,Hx,Ux
    vmovss | VEX.LIG.F3.0F 11 /r | Md,Vx
    vmovss | VEX.LIG.F3.0F 11 /r | Ux,Hx,Vx
    vmovsd | VEX.LIG.F2.0F 10 /r | Vx,Mq
    vmovsd | VEX.LIG.F2.0F 10 /r | Vx,Hx,Ux
    vmovsd | VEX.LIG.F2.0F 11 /r | Mq,Vx
    vmovlps | VEX.128.0F 12 /r | Vx,Hx,Mq
    vmovhlps | VEX.128.0F 12 /r | Vx,Hx,Ux
    vmovlps | VEX.128.0F 13 /r | Mq,Vx
    vmovhps | VEX.128.0F 16 /r | Vx,Hx,Mq
    vmovlhps | VEX.128.0F 16 /r | Vx,Hx,Ux
    vmovhps | VEX.128.0F 17 /r | Mq,Vx
    vmovlpd | VEX.128.66.0F 12 /r | Vx,Hx,Mq
    vmovhpd | VEX.128.66.0F 16 /r | Vx,Hx,Mq
    vmovddup | VEX.128.F2.0F 12 /r | Vx,Wq
    vmovddup | VEX.256.F2.0F 12 /r | VL,WL
    vmovsldup | VEX.x.F3.0F 12 /r | VL,WL
    vmovshdup | VEX.x.F3.0F 16 /r | VL,WL
    vmovaps | VEX.x.0F 28 /r | VL,WL | aligned
    vmovaps | VEX.x.0F 29 /r | WL,VL | aligned
    vmovapd | VEX.x.66.0F 28 /r | VL,WL | aligned
    vmovntps | VEX.x.0F 2B /r | ML,VL | aligned
    vmovdqa | VEX.x.66.0F 6F /r | VL,WL | aligned
    vmovdqa | VEX.x.66.0F 7F /r | WL,VL | aligned
    vmovdqu | VEX.x.F3.0F 6F /r | VL,WL
    vmovdqu | VEX.x.F3.0F 7F /r | WL,VL
    vmovntdq | VEX.x.66.0F E7 /r | ML,VL | aligned
    vlddqu | VEX.x.F2.0F F0 /r | VL,ML
    vmovd | VEX.128.66.0F 6E /r | Vx,Ey
    vmovd | VEX.128.66.0F 7E /r | Ey,Vx
    vmovq | VEX.128.F3.0F 7E /r | Vx,Wq
    vmovq | VEX.128.66.0F D6 /r | Wq,Vx
    vcvtsi2ss | VEX.LIG.F3.0F 2A /r | Vx,Hx,Ey
    vcvtsi2sd | VEX.LIG.F2.0F 2A /r | Vx,Hx,Ey
    vcvttss2si | VEX.LIG.F3.0F 2C /r | Gy,Wd | hint=f32
    vcvtss2si | VEX.LIG.F3.0F 2D /r | Gy,Wd | hint=f32
    vcvttsd2si | VEX.LIG.F2.0F 2C /r | Gy,Wq | hint=f64
    vcvtsd2si | VEX.LIG.F2.0F 2D /r | Gy,Wq | hint=f64
    vucomiss | VEX.LIG.0F 2E /r | Vx,Wd | hint=f32 w=OSZAPC
    vcomisd | VEX.LIG.66.0F 2F /r | Vx,Wq | hint=f64 w=OSZAPC
    vmovmskps | VEX.x.0F 50 /r | Gd,UL
    vmovmskpd | VEX.x.66.0F 50 /r | Gd,UL
    vsqrtps | VEX.x.0F 51 /r | VL,WL | hint=f32
    vsqrtpd | VEX.x.66.0F 51 /r | VL,WL | hint=f64
    vsqrtss | VEX.LIG.F3.0F 51 /r | Vx,Hx,Wd | hint=f32
    vsqrtsd | VEX.LIG.F2.0F 51 /r | Vx,Hx,Wq | hint=f64
    vrsqrtps | VEX.x.0F 52 /r | VL,WL | hint=f32 approx
    vrcpps | VEX.x.0F 53 /r | VL,WL | hint=f32 approx
    vcvtps2pd | VEX.x.0F 5A /r | VL,Wl | hint=f32
    vcvtpd2ps | VEX.x.66.0F 5A /r | Vx,WL | hint=f64
    vcvtss2sd | VEX.LIG.F3.0F 5A /r | Vx,Hx,Wd | hint=f32
    vcvtsd2ss | VEX.LIG.F2.0F 5A /r | Vx,Hx,Wq | hint=f64
    vcvtdq2ps | VEX.x.0F 5B /r | VL,WL | hint=i32
    vcvtps2dq | VEX.x.66.0F 5B /r | VL,WL | hint=f32
    vcvttps2dq | VEX.x.F3.0F 5B /r | VL,WL | hint=f32
    vcvtdq2pd | VEX.x.F3.0F E6 /r | VL,Wl | hint=i32
    vcvttpd2dq | VEX.x.66.0F E6 /r | Vx,WL | hint=f64
    vcvtpd2dq | VEX.x.F2.0F E6 /r | Vx,WL | hint=f64
    vcmpps | VEX.x.0F C2 /r | VL,HL,WL,Ib | hint=f32 imm=31
    vcmppd | VEX.x.66.0F C2 /r | VL,HL,WL,Ib | hint=f64 imm=31
    vcmpss | VEX.LIG.F3.0F C2 /r | Vx,Hx,Wd,Ib | hint=f32 imm=31
    vcmpsd | VEX.LIG.F2.0F C2 /r | Vx,Hx,Wq,Ib | hint=f64 imm=31
    vshufps | VEX.x.0F C6 /r | VL,HL,WL,Ib
    vshufpd | VEX.x.66.0F C6 /r | VL,HL,WL,Ib
    vaddsubps | VEX.x.F2.0F D0 /r | VL,HL,WL | hint=f32
    vaddsubpd | VEX.x.66.0F D0 /r | VL,HL,WL | hint=f64
    vhaddps | VEX.x.F2.0F 7C /r | VL,HL,WL | hint=f32
    vhaddpd | VEX.x.66.0F 7C /r | VL,HL,WL | hint=f64
    vhsubps | VEX.x.F2.0F 7D /r | VL,HL,WL | hint=f32
    vhsubpd | VEX.x.66.0F 7D /r | VL,HL,WL | hint=f64
    vldmxcsr | VEX.LZ.0F AE /2 | Md | s=load_mxcsr noseq
    vstmxcsr | VEX.LZ.0F AE /3 | Md | noseq
    vzeroupper | VEX.128.0F 77
    vzeroall | VEX.256.0F 77
    vpinsrb | VEX.128.66.0F3A 20 /r | Vx,Hx,Rd,Ib
    vpinsrb | VEX.128.66.0F3A 20 /r | Vx,Hx,Mb,Ib
    vpinsrw | VEX.128.66.0F C4 /r | Vx,Hx,Rd,Ib
    vpinsrd | VEX.128.66.0F3A 22 /r | Vx,Hx,Ey,Ib
    vpextrb | VEX.128.66.0F3A 14 /r | Rd,Vx,Ib
    vpextrw | VEX.128.66.0F C5 /r | Gd,Ux,Ib
    vpextrw | VEX.128.66.0F3A 15 /r | Mw,Vx,Ib
    vpextrd | VEX.128.66.0F3A 16 /r | Ey,Vx,Ib
    vextractps | VEX.128.66.0F3A 17 /r | Ed,Vx,Ib
    vinsertps | VEX.128.66.0F3A 21 /r | Vx,Hx,Wd,Ib
    vmaskmovdqu | VEX.128.66.0F F7 /r | Vx,Ux | s=mask_move noseq
    vpmovmskb | VEX.128.66.0F D7 /r | Gd,Ux
    vpshufd | VEX.128.66.0F 70 /r | VL,WL,Ib
    vpshufhw | VEX.128.F3.0F 70 /r | VL,WL,Ib
    vpshuflw | VEX.128.F2.0F 70 /r | VL,WL,Ib
    vpalignr | VEX.128.66.0F3A 0F /r | VL,HL,WL,Ib | imm=63
    vpblendw | VEX.128.66.0F3A 0E /r | VL,HL,WL,Ib
    vpblendvb | VEX.128.66.0F3A 4C /r | VL,HL,WL,XL
    vmpsadbw | VEX.128.66.0F3A 42 /r | VL,HL,WL,Ib
    vphminposuw | VEX.128.66.0F38 41 /r | Vx,Wx | hint=i16
    vmovntdqa | VEX.128.66.0F38 2A /r | VL,ML | aligned
    vpcmpestri | VEX.128.66.0F3A 61 /r | Vx,Wx,Ib | hint=i8 imm=127 w=OSZAPC
    vpcmpistri | VEX.128.66.0F3A 63 /r | Vx,Wx,Ib | hint=i8 imm=127 w=OSZAPC
    vpcmpistrm | VEX.128.66.0F3A 62 /r | Vx,Wx,Ib | hint=i8 imm=127 w=OSZAPC
    vpermilps | VEX.x.66.0F38 0C /r | VL,HL,WL
    vpermilpd | VEX.x.66.0F38 0D /r | VL,HL,WL
    vpermilps | VEX.x.66.0F3A 04 /r | VL,WL,Ib
    vpermilpd | VEX.x.66.0F3A 05 /r | VL,WL,Ib
    vtestps | VEX.x.66.0F38 0E /r | VL,WL | w=OSZAPC
    vtestpd | VEX.x.66.0F38 0F /r | VL,WL | w=OSZAPC
    vptest | VEX.x.66.0F38 17 /r | VL,WL | w=OSZAPC
    vbroadcastss | VEX.x.66.0F38 18 /r | VL,Md
    vbroadcastsd | VEX.256.66.0F38 19 /r | VL,Mq
    vbroadcastf128 | VEX.256.66.0F38 1A /r | VL,Mx
    vmaskmovps | VEX.x.66.0F38 2C /r | VL,HL,ML
    vmaskmovpd | VEX.x.66.0F38 2D /r | VL,HL,ML
    vmaskmovps | VEX.x.66.0F38 2E /r | ML,HL,VL
    vmaskmovpd | VEX.x.66.0F38 2F /r | ML,HL,VL
    vperm2f128 | VEX.256.66.0F3A 06 /r | VL,HL,WL,Ib
    vroundps | VEX.x.66.0F3A 08 /r | VL,WL,Ib | hint=f32 imm=15
    vroundpd | VEX.x.66.0F3A 09 /r | VL,WL,Ib | hint=f64 imm=15
    vroundss | VEX.LIG.66.0F3A 0A /r | Vx,Hx,Wd,Ib | hint=f32 imm=15
    vroundsd | VEX.LIG.66.0F3A 0B /r | Vx,Hx,Wq,Ib | hint=f64 imm=15
    vblendps | VEX.x.66.0F3A 0C /r | VL,HL,WL,Ib
    vblendpd | VEX.x.66.0F3A 0D /r | VL,HL,WL,Ib
    vinsertf128 | VEX.256.66.0F3A 18 /r | VL,HL,Wx,Ib
    vextractf128 | VEX.256.66.0F3A 19 /r | Wx,VL,Ib
    vdpps | VEX.x.66.0F3A 40 /r | VL,HL,WL,Ib | hint=f32
    vdppd | VEX.128.66.0F3A 41 /r | VL,HL,WL,Ib | hint=f64
    vblendvps | VEX.x.66.0F3A 4A /r | VL,HL,WL,XL
    vblendvpd | VEX.x.66.0F3A 4B /r | VL,HL,WL,XL
    vaesenc | VEX.128.66.0F38 DC /r | Vx,Hx,Wx
    vaesdeclast | VEX.128.66.0F38 DF /r | Vx,Hx,Wx
    vpclmulqdq | VEX.128.66.0F3A 44 /r | Vx,Hx,Wx,Ib | imm=17
  )",
              forms);
  parse_forms("avx2", R"(
    vpmovmskb | VEX.256.66.0F D7 /r | Gd,UL
    vpshufd | VEX.256.66.0F 70 /r | VL,WL,Ib
    vpshufhw | VEX.256.F3.0F 70 /r | VL,WL,Ib
    vpshuflw | VEX.256.F2.0F 70 /r | VL,WL,Ib
    vpalignr | VEX.256.66.0F3A 0F /r | VL,HL,WL,Ib | imm=63
    vpblendw | VEX.256.66.0F3A 0E /r | VL,HL,WL,Ib
    vpblendvb | VEX.256.66.0F3A 4C /r | VL,HL,WL,XL
    vmpsadbw | VEX.256.66.0F3A 42 /r | VL,HL,WL,Ib
    vmovntdqa | VEX.256.66.0F38 2A /r | VL,ML | aligned
    vbroadcastss | VEX.x.66.0F38 18 /r | VL,Ux
    vbroadcastsd | VEX.256.66.0F38 19 /r | VL,Ux
    vbroadcasti128 | VEX.256.66.0F38 5A /r | VL,Mx
    vpbroadcastb | VEX.x.66.0F38 78 /r | VL,Wb
    vpbroadcastw | VEX.x.66.0F38 79 /r | VL,Ww
    vpbroadcastd | VEX.x.66.0F38 58 /r | VL,Wd
    vpbroadcastq | VEX.x.66.0F38 59 /r | VL,Wq
    vpermps | VEX.256.66.0F38 16 /r | VL,HL,WL
    vpermd | VEX.256.66.0F38 36 /r | VL,HL,WL
    vpermq | VEX.256.66.0F3A.W1 00 /r | VL,WL,Ib
    vpermpd | VEX.256.66.0F3A.W1 01 /r | VL,WL,Ib
    vpblendd | VEX.x.66.0F3A 02 /r | VL,HL,WL,Ib
    vperm2i128 | VEX.256.66.0F3A 46 /r | VL,HL,WL,Ib
    vinserti128 | VEX.256.66.0F3A 38 /r | VL,HL,Wx,Ib
    vextracti128 | VEX.256.66.0F3A 39 /r | Wx,VL,Ib
    vpmaskmovd | VEX.x.66.0F38.W0 8C /r | VL,HL,ML
    vpmaskmovq | VEX.x.66.0F38.W1 8C /r | VL,HL,ML
    vpmaskmovd | VEX.x.66.0F38.W0 8E /r | ML,HL,VL
    vpmaskmovq | VEX.x.66.0F38.W1 8E /r | ML,HL,VL
    vpsrlvd | VEX.x.66.0F38.W0 45 /r | VL,HL,WL | hint=count
    vpsrlvq | VEX.x.66.0F38.W1 45 /r | VL,HL,WL | hint=count
    vpsravd | VEX.x.66.0F38.W0 46 /r | VL,HL,WL | hint=count
    vpsllvd | VEX.x.66.0F38.W0 47 /r | VL,HL,WL | hint=count
    vpsllvq | VEX.x.66.0F38.W1 47 /r | VL,HL,WL | hint=count
    vpgatherdd | VEX.x.66.0F38.W0 90 /r | VL,M0,HL | s=gather noseq
    vpgatherdq | VEX.x.66.0F38.W1 90 /r | VL,M0,HL | s=gather noseq
    vpgatherqd | VEX.x.66.0F38.W0 91 /r | VL,M0,HL | s=gather noseq
    vpgatherqq | VEX.x.66.0F38.W1 91 /r | VL,M0,HL | s=gather noseq
    vgatherdps | VEX.x.66.0F38.W0 92 /r | VL,M0,HL | s=gather noseq
    vgatherdpd | VEX.x.66.0F38.W1 92 /r | VL,M0,HL | s=gather noseq
    vgatherqps | VEX.x.66.0F38.W0 93 /r | VL,M0,HL | s=gather noseq
    vgatherqpd | VEX.x.66.0F38.W1 93 /r | VL,M0,HL | s=gather noseq
  )",
              forms);
  parse_forms("f16c", R"(
    vcvtph2ps | VEX.x.66.0F38 13 /r | VL,Wl | hint=i16
    vcvtps2ph | VEX.x.66.0F3A 1D /r | Wl,VL,Ib | hint=f32 imm=7
  )",
              forms);
}

}  // namespace phybin::difftest
