// A kernel that does nothing.
.globl empty
.p2align 8
.type empty, @function
.section .rodata, "a", @progbits
.p2align 6
.amdhsa_kernel empty
  .amdhsa_kernarg_size 24
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 1
.end_amdhsa_kernel
.text
empty:
  s_endpgm
