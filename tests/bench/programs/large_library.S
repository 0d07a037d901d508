// A library of 100 MiB of code: 25,600 functions, one on each page. call_page(i) calls one of them.
  .text
  .globl call_page
  .type call_page, @function
call_page:
  movslq %edi, %rax
  shlq $12, %rax
  leaq pages(%rip), %rdx
  addq %rdx, %rax
  jmp *%rax

  .balign 4096
pages:
  .set i, 0
  .rept 25600
  .balign 4096
  leal i(%rdi,%rdi,2), %eax
  xorl $i, %eax
  ret
  .set i, i + 1
  .endr
  .balign 4096
  .section .note.GNU-stack, "", @progbits
