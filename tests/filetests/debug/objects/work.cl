// Variables of all kinds, a call, and an inlined function; README.md has the commands.
typedef float float4 __attribute__((ext_vector_type(4)));
typedef enum { COLD = -1, WARM = 1, HOT = 2 } Heat;
typedef unsigned char uchar;
typedef struct Node Node;
struct Node {
  float x;
  int n;
  float v[2];
  uchar low;
  short high;
  Heat heat;
  union {
    int as_int;
    float as_float;
  };
  private Node *next;
};

constant int scale_by = 3;

__attribute__((noinline)) static float scale(float a, int n, private Node *node) {
  float r = a * n;
  for (int i = 0; i < n; i++) {
    r += node->v[i & 1];
  }
  return r * scale_by;
}

static inline float half_of(float a) {
  float h = a * 0.5f;
  return h + 1.0f;
}

__attribute__((reqd_work_group_size(64, 1, 1))) kernel void work(global float *out, global const float *in,
                                                                  int n) {
  local float tile[64];
  int l = __builtin_amdgcn_workitem_id_x();
  Node node = {in[l], l, {1.0f, 2.0f}, l & 7, -17, l > 3 ? HOT : WARM, {.as_float = 1.5f}, 0};
  node.next = &node;
  float4 pair = {node.x, 2, 3, 4};
  tile[l] = node.x;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  float acc = 0;
  for (int i = 0; i < n; i++)
    acc += tile[(l + i) & 63];
  acc += scale(acc, n, &node);
  acc = half_of(acc);
  out[l] = acc + node.n + pair.w;
}
