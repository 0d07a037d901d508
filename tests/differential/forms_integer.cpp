// Forms of the integer instruction set (Intel SDM volume 2).
#include "tests/differential/form.h"

namespace phybin::difftest {
namespace {

constexpr std::string_view kConditions[16] = {"o", "no", "b", "ae", "e", "ne", "be", "a",
                                              "s", "ns", "p", "np", "l", "ge", "le", "g"};
constexpr std::string_view kConditionFlags[8] = {"O", "C", "Z", "CZ", "S", "P", "SO", "ZSO"};

std::string hex(unsigned byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// The eight operations that share the encodings of ADD.
void add_alu(std::vector<Form>& forms) {
  constexpr std::string_view kNames[8] = {"add", "or", "adc", "sbb", "and", "sub", "xor", "cmp"};
  for (unsigned op = 0; op < 8; op++) {
    const std::string name(kNames[op]);
    const bool logic = op == 1 || op == 4 || op == 6;
    std::string flags = logic ? " w=OSZPC u=A" : " w=OSZAPC";
    if (op == 2 || op == 3) flags += " r=C";
    const std::string to_memory = (op == 7 ? "" : " lock") + flags;
    const std::string digit = " /" + std::to_string(op);
    std::string table;
    table += name + "|" + hex(op * 8) + " /r|Eb,Gb|" + to_memory + "\n";
    table += name + "|" + hex(op * 8 + 1) + " /r|Ev,Gv|" + to_memory + "\n";
    table += name + "|" + hex(op * 8 + 2) + " /r|Gb,Eb|" + flags + "\n";
    table += name + "|" + hex(op * 8 + 3) + " /r|Gv,Ev|" + flags + "\n";
    table += name + "|" + hex(op * 8 + 4) + "|al,Ib|" + flags + "\n";
    table += name + "|" + hex(op * 8 + 5) + "|rv,Iz|" + flags + "\n";
    table += name + "|80" + digit + "|Eb,Ib|" + to_memory + "\n";
    table += name + "|81" + digit + "|Ev,Iz|" + to_memory + "\n";
    table += name + "|83" + digit + "|Ev,Ib|" + to_memory + "\n";
    parse_forms("alu", table, forms);
  }
  parse_forms("alu", R"(
    test | 84 /r | Eb,Gb | w=OSZPC u=A
    test | 85 /r | Ev,Gv | w=OSZPC u=A
    test | A8    | al,Ib | w=OSZPC u=A
    test | A9    | rv,Iz | w=OSZPC u=A
    test | F6 /0 | Eb,Ib | w=OSZPC u=A
    test | F7 /0 | Ev,Iz | w=OSZPC u=A
    inc  | FE /0 | Eb | lock w=OSZAP
    inc  | FF /0 | Ev | lock w=OSZAP
    dec  | FE /1 | Eb | lock w=OSZAP
    dec  | FF /1 | Ev | lock w=OSZAP
    not  | F6 /2 | Eb | lock
    not  | F7 /2 | Ev | lock
    neg  | F6 /3 | Eb | lock w=OSZAPC
    neg  | F7 /3 | Ev | lock w=OSZAPC
  )",
              forms);
}

void add_shifts(std::vector<Form>& forms) {
  constexpr std::string_view kNames[8] = {"rol", "ror", "rcl", "rcr", "shl", "shr", "sal", "sar"};
  for (unsigned op = 0; op < 8; op++) {
    const std::string name(kNames[op]);
    const std::string flags = op < 2 ? "s=rotate w=OC" : op < 4 ? "s=rotate_carry w=OC r=C" : "s=shift w=OSZAPC";
    const std::string digit = " /" + std::to_string(op);
    std::string table;
    table += name + "|C0" + digit + "|Eb,Ib|" + flags + "\n";
    table += name + "|C1" + digit + "|Ev,Ib|" + flags + "\n";
    table += name + "|D0" + digit + "|Eb|" + flags + "\n";
    table += name + "|D1" + digit + "|Ev|" + flags + "\n";
    table += name + "|D2" + digit + "|Eb,cl|" + flags + "\n";
    table += name + "|D3" + digit + "|Ev,cl|" + flags + "\n";
    parse_forms("shift", table, forms);
  }
  parse_forms("shift", R"(
    shld | 0F A4 /r | Ev,Gv,Ib | s=double_shift w=OSZAPC
    shld | 0F A5 /r | Ev,Gv,cl | s=double_shift w=OSZAPC
    shrd | 0F AC /r | Ev,Gv,Ib | s=double_shift w=OSZAPC
    shrd | 0F AD /r | Ev,Gv,cl | s=double_shift w=OSZAPC
  )",
              forms);
}

void add_conditional(std::vector<Form>& forms) {
  for (unsigned condition = 0; condition < 16; condition++) {
    const std::string name(kConditions[condition]);
    const std::string flags = " r=" + std::string(kConditionFlags[condition / 2]);
    parse_forms("move",
                "cmov" + name + "|0F " + hex(0x40 + condition) + " /r|Gv,Ev|" + flags + "\nset" + name + "|0F " +
                    hex(0x90 + condition) + " /r|Eb|" + flags,
                forms);
    parse_forms("branch",
                "j" + name + "|" + hex(0x70 + condition) + "|Jb|s=jump" + flags + "\nj" + name + "|0F " +
                    hex(0x80 + condition) + "|Jd|s=jump" + flags,
                forms);
  }
}

}  // namespace

void add_integer_forms(std::vector<Form>& forms) {
  add_alu(forms);
  add_shifts(forms);
  parse_forms("muldiv", R"(
    mul  | F6 /4    | Eb       | w=OC u=SZAP
    mul  | F7 /4    | Ev       | w=OC u=SZAP
    imul | F6 /5    | Eb       | w=OC u=SZAP
    imul | F7 /5    | Ev       | w=OC u=SZAP
    imul | 0F AF /r | Gv,Ev    | w=OC u=SZAP
    imul | 69 /r    | Gv,Ev,Iz | w=OC u=SZAP
    imul | 6B /r    | Gv,Ev,Ib | w=OC u=SZAP
    div  | F6 /6    | Eb       | s=div u=OSZAPC
    div  | F7 /6    | Ev       | s=div u=OSZAPC
    idiv | F6 /7    | Eb       | s=idiv u=OSZAPC noseq
    idiv | F7 /7    | Ev       | s=idiv u=OSZAPC noseq
  )",
              forms);
  parse_forms("bit", R"(
    bt  | 0F A3 /r | Rv,Gv | w=C u=OSAP
    bts | 0F AB /r | Rv,Gv | w=C u=OSAP
    btr | 0F B3 /r | Rv,Gv | w=C u=OSAP
    btc | 0F BB /r | Rv,Gv | w=C u=OSAP
    bt  | 0F A3 /r | Mv,Gv | w=C u=OSAP s=bit_memory noseq
    bts | 0F AB /r | Mv,Gv | w=C u=OSAP s=bit_memory noseq lock
    btr | 0F B3 /r | Mv,Gv | w=C u=OSAP s=bit_memory noseq lock
    btc | 0F BB /r | Mv,Gv | w=C u=OSAP s=bit_memory noseq lock
    bt  | 0F BA /4 | Ev,Ib | w=C u=OSAP
    bts | 0F BA /5 | Ev,Ib | w=C u=OSAP lock
    btr | 0F BA /6 | Ev,Ib | w=C u=OSAP lock
    btc | 0F BA /7 | Ev,Ib | w=C u=OSAP lock
    bsf | 0F BC /r | Gv,Ev | w=Z u=OSAPC s=bit_scan
    bsr | 0F BD /r | Gv,Ev | w=Z u=OSAPC s=bit_scan
    bswap | 0F C8 +r | Zy
  )",
              forms);
  parse_forms("move", R"(
    mov | 88 /r | Eb,Gb
    mov | 89 /r | Ev,Gv
    mov | 8A /r | Gb,Eb
    mov | 8B /r | Gv,Ev
    mov | C6 /0 | Eb,Ib
    mov | C7 /0 | Ev,Iz
    mov | B0 +r | Zb,Ib
    mov | B8 +r | Zv,Iv
    mov | A0 | al,Ob
    mov | A1 | rv,Ov
    mov | A2 | Ob,al
    mov | A3 | Ov,ra
    movzx | 0F B6 /r | Gv,Eb
    movzx | 0F B7 /r | Gv,Ew
    movsx | 0F BE /r | Gv,Eb
    movsx | 0F BF /r | Gv,Ew
    movsxd | 63 /r | Gy,Ed
    cbw | 66 98
    cwde | 98
    cdqe | REX.W 98
    cwd | 66 99
    cdq | 99
    cqo | REX.W 99
    lea | 8D /r | Gv,M0
    xlat | D7 || s=xlat noseq
    nop | 90
    nop | 66 90
    pause | F3 90
    nop | 0F 1F /0 | Ev
    endbr64 | F3 0F 1E FA
    prefetcht0 | 0F 18 /1 | Mb
    prefetchnta | 0F 18 /0 | Mb
    prefetchw | 0F 0D /1 | Mb
    movnti | 0F C3 /r | My,Gy
  )",
              forms);
  parse_forms("atomic", R"(
    xchg | 86 /r | Eb,Gb | lock
    xchg | 87 /r | Ev,Gv | lock
    xchg | 90 +r | Zv
    xadd | 0F C0 /r | Eb,Gb | lock w=OSZAPC
    xadd | 0F C1 /r | Ev,Gv | lock w=OSZAPC
    cmpxchg | 0F B0 /r | Eb,Gb | lock w=OSZAPC s=compare_exchange
    cmpxchg | 0F B1 /r | Ev,Gv | lock w=OSZAPC s=compare_exchange
    cmpxchg8b | 0F C7 /1 | Mq | lock w=Z s=compare_exchange_pair
    cmpxchg16b | REX.W 0F C7 /1 | Mx | lock w=Z s=compare_exchange_pair
    mfence | 0F AE F0
    lfence | 0F AE E8
    sfence | 0F AE F8
  )",
              forms);
  parse_forms("string", R"(
    movsb | A4 || rep s=string r=D
    movsw | 66 A5 || rep s=string r=D
    movsd | A5 || rep s=string r=D
    movsq | REX.W A5 || rep s=string r=D
    cmpsb | A6 || rep s=string w=OSZAPC r=D
    cmpsw | 66 A7 || rep s=string w=OSZAPC r=D
    cmpsd | A7 || rep s=string w=OSZAPC r=D
    cmpsq | REX.W A7 || rep s=string w=OSZAPC r=D
    stosb | AA || rep s=string r=D
    stosw | 66 AB || rep s=string r=D
    stosd | AB || rep s=string r=D
    stosq | REX.W AB || rep s=string r=D
    lodsb | AC || rep s=string r=D
    lodsw | 66 AD || rep s=string r=D
    lodsd | AD || rep s=string r=D
    lodsq | REX.W AD || rep s=string r=D
    scasb | AE || rep s=string w=OSZAPC r=D
    scasw | 66 AF || rep s=string w=OSZAPC r=D
    scasd | AF || rep s=string w=OSZAPC r=D
    scasq | REX.W AF || rep s=string w=OSZAPC r=D
  )",
              forms);
  parse_forms("stack", R"(
    push | 50 +r | Zv | s=stack d64
    pop | 58 +r | Zv | s=stack d64
    push | FF /6 | Ev | s=stack d64
    pop | 8F /0 | Ev | s=stack d64
    push | 68 | Iz,rv | s=stack d64
    push | 6A | Ib,rv | s=stack d64
    pushfq | 9C || s=stack r=OSZAPCD
    pushfw | 66 9C || s=stack r=OSZAPCD noseq
    popfq | 9D || s=stack w=OSZAPCD noseq
    popfw | 66 9D || s=stack w=OSZAPCD noseq
    enter | C8 | Iw,Ib | s=enter noseq
    leave | C9 || s=leave noseq
  )",
              forms);
  parse_forms("flags", R"(
    lahf | 9F || r=SZAPC
    sahf | 9E || w=SZAPC
    cmc | F5 || w=C r=C
    clc | F8 || w=C
    stc | F9 || w=C
    cld | FC || w=D
    std | FD || w=D noseq
  )",
              forms);
  parse_forms("branch", R"(
    jmp | EB | Jb | s=jump
    jmp | E9 | Jd | s=jump
    loopne | E0 | Jb | s=loop r=Z noseq
    loope | E1 | Jb | s=loop r=Z noseq
    loop | E2 | Jb | s=loop noseq
    jrcxz | E3 | Jb | s=loop noseq
    jecxz | 67 E3 | Jb | s=loop noseq
    call | E8 | Jd | s=call noseq
    call | FF /2 | Eq | s=call_indirect noseq
    jmp | FF /4 | Eq | s=jump_indirect noseq
    ret | C3 || s=return noseq
    ret | C2 | Iw | s=return noseq
  )",
              forms);
  // Only with --faults.
  parse_forms("fault", R"(
    ud2 | 0F 0B || noseq
    int3 | CC || noseq
    hlt | F4 || noseq
    cli | FA || noseq
    in | EC || noseq
    rdmsr | 0F 32 || noseq
  )",
              forms);
  add_conditional(forms);
}

}  // namespace phybin::difftest
