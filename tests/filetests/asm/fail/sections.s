.section "", "a"
.section "a\0b", "a", @progbits
.section "a\377", "a"
.section
.section .data.a"b, "aw"
.byte 1
