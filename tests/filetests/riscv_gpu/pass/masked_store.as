# The example of the machine's description: only threads with x5 below 5 store.
.blocks 32
.warps 12

# This is a comment
addi x5, x1, 1      # x5 := thread_id + 1
sx.slti s1, x5, 5   # s1[thread_id] := x5 < 5
sw x5, 0(x1)        # mem[thread_id] := x5
halt                # Stop the execution
