"""The rows of the table "ARM64 instructions per x86 instruction": the text for the assembler (Intel syntax; `;` between
instructions of an idiom) and what FEX needs (August 2026, CPUs without FlagM, its own regression figures: one
instruction alone, all its flags wanted, no ordering, block exit not counted, NaN results not exact). Where FEX needs
different numbers for variants of a row, the variant written here has the number given here.

FP rows are those whose x86 result for NaN inputs differs from ARM64's; their second column is --fast-math.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    name: str
    code: str
    fex: int
    floating: bool = False


def _rows(text: str, floating: bool = False) -> list[Row]:
    rows = []
    for line in text.strip().splitlines():
        name, code, fex = (field.strip() for field in line.split("|"))
        rows.append(Row(name, code or name, int(fex), floating))
    return rows


GENERAL = _rows("""
mov r64, [m]                | mov rax, [rbx]                        | 1
mov [m], r64                | mov [rbx], rax                        | 1
mov r8, [m] (merge)         | mov al, [rbx]                         | 2
mov r64, [r + big disp]     | mov rax, [rbx + 0x12344]              | 2
mov [m], imm                | mov dword ptr [rbx], 0x1234           | 2
mov r64, imm64 (worst)      | movabs rax, 0x123456789abcdef0        | 4
add r64, r64                | add rax, rbx                          | 6
add r32, imm                | add eax, 100                          | 6
add r8, r8                  | add al, bl                            | 8
sub r64, r64                | sub rax, rbx                          | 3
cmp r64, r64                | cmp rax, rbx                          | 2
cmp r32, imm                | cmp eax, 100                          | 2
cmp r8, imm                 | cmp al, 10                            | 5
test r64, r64 (same)        | test rax, rax                         | 1
test r64, r64               | test rax, rbx                         | 4
and r64, r64                | and rax, rbx                          | 5
or r64, r64                 | or rax, rbx                           | 2
xor r64, r64                | xor rax, rbx                          | 2
xor r32, r32 (zero)         | xor eax, eax                          | 2
inc r64                     | inc rax                               | 7
dec r64                     | dec rax                               | 7
neg r64                     | neg rax                               | 3
adc r64, r64                | adc rax, rbx                          | 9
sbb r64, r64                | sbb rax, rbx                          | 3
lea base+idx*s              | lea rax, [rbx + rcx*4]                | 1
push r64                    | push rbx                              | 1
pop r64                     | pop rbx                               | 1
xchg r64, r64               | xchg rcx, rbx                         | 3
shl r64, imm                | shl rax, 5                            | 8
shr r64, imm                | shr rax, 5                            | 8
sar r64, imm                | sar rax, 5                            | 8
shl r64, 1                  | shl rax, 1                            | 11
rol r64, imm                | rol rax, 5                            | 6
shl r64, cl                 | shl rax, cl                           | 14
shr r64, cl                 | shr rax, cl                           | 14
sar r64, cl                 | sar rax, cl                           | 11
rol r64, cl                 | rol rax, cl                           | 10
rcr r64, 1                  | rcr rax, 1                            | 10
shld r64, r64, cl           | shld rax, rbx, cl                     | 22
imul r64, r64               | imul rax, rbx                         | 5
imul r64, r64, imm          | imul rax, rbx, 100                    | 6
mul r64                     | mul rbx                               | 4
imul r64 (one operand)      | imul rbx                              | 5
div r32                     | div ebx                               | 7
idiv r32                    | idiv ebx                              | 8
div r64                     | div rbx                               | 15
idiv r64                    | idiv rbx                              | 17
movzx r32, r8               | movzx eax, bl                         | 1
movzx r32, [m8]             | movzx eax, byte ptr [rbx]             | 1
movsx r64, r8               | movsx rax, bl                         | 1
movsx r64, [m8]             | movsx rax, byte ptr [rbx]             | 2
movsxd r64, r32             | movsxd rax, ebx                       | 1
cdqe                        | cdqe                                  | 1
cqo                         | cqo                                   | 1
cmovz r64, r64              | cmovz rax, rbx                        | 1
setz r8                     | setz al                               | 2
cmovp r64, r64              | cmovp rax, rbx                        | 7
setp r8                     | setp al                               | 5
bt r64, r64                 | bt rax, rbx                           | 6
bt r64, imm                 | bt rax, 5                             | 5
bsf r64, r64                | bsf rax, rbx                          | 4
bsr r64, r64                | bsr rax, rbx                          | 5
bswap r64                   | bswap rax                             | 1
popcnt r64, r64             | popcnt rax, rbx                       | 7
mfence                      | mfence                                | 1
lfence                      | lfence                                | 1
sfence                      | sfence                                | 1
rdtsc                       | rdtsc                                 | 3
pause                       | pause                                 | 1
pushfq                      | pushfq                                | 39
popfq                       | popfq                                 | 44
""")

# FEX's figures hold with LSE atomics; ours are measured with them too (HostFeatures of a Neoverse N1).
ATOMIC = _rows("""
lock xadd [m], r64          | lock xadd [rbx], rax                  | 7
lock add [m], r64           | lock add [rbx], rax                   | 6
lock cmpxchg [m], r64       | lock cmpxchg [rbx], rcx               | 4
lock cmpxchg [m], r32       | lock cmpxchg [rbx], ecx               | 8
xchg [m], r64               | xchg [rbx], rax                       | 1
""")

VECTOR = _rows("""
movups xmm, [m]             | movups xmm0, [rbx]                    | 1
movaps xmm, [m] (#GP check) | movaps xmm0, [rbx]                    | 1
movups [m], xmm             | movups [rbx], xmm0                    | 1
paddd                       | paddd xmm0, xmm1                      | 1
pcmpeqb                     | pcmpeqb xmm0, xmm1                    | 1
pshufb                      | pshufb xmm0, xmm1                     | 3
pshufd imm (general)        | pshufd xmm0, xmm1, 0x39               | 3
punpcklbw                   | punpcklbw xmm0, xmm1                  | 1
packsswb                    | packsswb xmm0, xmm1                   | 2
pmaddwd                     | pmaddwd xmm0, xmm1                    | 3
pmovmskb                    | pmovmskb eax, xmm1                    | 7
movmskps                    | movmskps eax, xmm1                    | 5
movmskpd                    | movmskpd eax, xmm1                    | 4
psrlq xmm, xmm              | psrlq xmm0, xmm1                      | 5
ptest                       | ptest xmm0, xmm1                      | 14
aesenc                      | aesenc xmm0, xmm1                     | 4
pclmulqdq                   | pclmulqdq xmm0, xmm1, 0x11            | 1
ucomisd                     | ucomisd xmm0, xmm1                    | 5
cvtsi2sd                    | cvtsi2sd xmm0, rax                    | 2
vmovups ymm, [m]            | vmovups ymm0, [rbx]                   | 2
vmovups [m], ymm            | vmovups [rbx], ymm0                   | 2
vzeroupper                  | vzeroupper                            | 9
vperm2f128                  | vperm2f128 ymm0, ymm1, ymm2, 0x21     | 3
vpermd                      | vpermd ymm0, ymm1, ymm2               | 23
vgatherdpd ymm              | vgatherdpd ymm0, [rbx + xmm1*8], ymm2 | 25
""")

FLOATING = _rows("""
addps                       | addps xmm0, xmm1                      | 1
mulpd                       | mulpd xmm0, xmm1                      | 1
addsd                       | addsd xmm0, xmm1                      | 2
mulsd                       | mulsd xmm0, xmm1                      | 2
divsd                       | divsd xmm0, xmm1                      | 2
sqrtsd                      | sqrtsd xmm0, xmm1                     | 2
minsd                       | minsd xmm0, xmm1                      | 5
maxsd                       | maxsd xmm0, xmm1                      | 5
minps                       | minps xmm0, xmm1                      | 2
maxps                       | maxps xmm0, xmm1                      | 2
cvttss2si                   | cvttss2si eax, xmm1                   | 7
cvtps2dq                    | cvtps2dq xmm0, xmm1                   | 2
vaddpd ymm                  | vaddpd ymm0, ymm1, ymm2               | 5
vmulpd ymm                  | vmulpd ymm0, ymm1, ymm2               | 5
vfmadd231pd ymm             | vfmadd231pd ymm0, ymm1, ymm2          | 6
vfmadd231sd                 | vfmadd231sd xmm0, xmm1, xmm2          | 3
""", floating=True)

# FEX's figures for the first two are with FlagM.
IDIOMS = _rows("""
add; adc; test              | add rax, rbx; adc rcx, rdx; test rcx, rcx | 3
add; inc; test              | add rax, rbx; inc rcx; test rcx, rcx      | 4
""")

GROUPS = [("General registers and flags", GENERAL), ("Locked", ATOMIC), ("Vector", VECTOR),
          ("Floating point", FLOATING), ("Idioms", IDIOMS)]
