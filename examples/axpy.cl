// y[i] += a * x[i], in OpenCL C without a library. docs/commands.md shows how to run it.
kernel void axpy(global const float *x, global float *y, float a, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] += a * x[i];
}
