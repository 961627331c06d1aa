/* What an instruction runs on. The caller sets the operands and the state that the instruction reads, and takes
   what it has written. A body of shape `lane` runs once for each active lane, with `lane` set.

   A lane mask that a body writes (the result of a compare, carries) is built lane by lane: set it to 0 before the
   first lane, and write it to its register after the last one. */
typedef struct isa_machine isa_machine;

struct isa_machine {
    /* The values of operands with their modifiers applied; destinations before and after. ISA_VCC_OUT is the mask
       that is written, ISA_VCC the one that is read. */
    isa_u128 operand[ISA_ROLES];
    /* How many low bits of an operand the body has written; 0: none. */
    uint32_t written[ISA_ROLES];
    /* The numbers of operands' registers. */
    uint32_t index[ISA_ROLES];
    /* Fields of the encoding. */
    uint32_t field[ISA_FIELDS];
    /* The clamp bit of the encoding. */
    bool clamp;
    /* `exec_out` is the mask that bodies of shape `lane` write. */
    uint64_t exec, exec_out, vcc;
    uint32_t scc, m0, mode, status;
    /* The address of the instruction; of the next one, if the body jumps. */
    uint64_t pc;
    uint32_t inst_size;
    uint32_t lane, wave_size, vgpr_size, wave_id, lds_size;
    uint64_t scratch_base, shared_base, private_base, trap_base;
    /* ISA_WROTE_…: the state that the body has assigned. */
    uint32_t states;
    /* Set by a function below, if execution must stop: a fault, a barrier, the end of the wave. */
    bool stop;
    /* Of the caller. */
    void *user;
    /* Memory, little endian. */
    isa_u128 (*load)(isa_machine *m, int space, uint64_t address, unsigned bytes);
    void (*store)(isa_machine *m, int space, uint64_t address, unsigned bytes, isa_u128 value);
    /* Registers by their numbers. */
    uint32_t (*vgpr)(isa_machine *m, uint32_t lane, uint32_t number);
    void (*set_vgpr)(isa_machine *m, uint32_t lane, uint32_t number, uint32_t value);
    uint32_t (*sgpr)(isa_machine *m, uint32_t number);
    void (*set_sgpr)(isa_machine *m, uint32_t number, uint32_t value);
    /* A dword of an operand in any lane. */
    uint32_t (*operand_lane)(isa_machine *m, int role, uint32_t lane, uint32_t index);
    /* A builtin with an effect (ISA_CONTROL_…); returns its value, if it has one. */
    isa_u128 (*control)(isa_machine *m, int builtin, const isa_u128 *arguments, unsigned count);
};

enum {
    ISA_WROTE_EXEC = 1,
    ISA_WROTE_VCC = 2,
    ISA_WROTE_SCC = 4,
    ISA_WROTE_M0 = 8,
    ISA_WROTE_PC = 16,
    ISA_WROTE_MODE = 32
};

/* The low bits of an operand. */
static inline isa_u64 isa_read(const isa_machine *m, int role, unsigned width)
{
    return (isa_u64)m->operand[role] & isa_mask64(width);
}

static inline isa_u128 isa_read_wide(const isa_machine *m, int role, unsigned width)
{
    return m->operand[role] & isa_mask(width);
}

/* Writes the low bits of an operand. */
static inline void isa_write(isa_machine *m, int role, unsigned width, isa_u128 value)
{
    m->operand[role] = (m->operand[role] & ~isa_mask(width)) | value;
    if (m->written[role] < width)
        m->written[role] = width;
}
