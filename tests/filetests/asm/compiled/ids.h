/* Ids without a device library. */
#define LOCAL_ID ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP_ID ((int)__builtin_amdgcn_workgroup_id_x())
#define GLOBAL_ID (GROUP_ID * (int)__builtin_amdgcn_workgroup_size_x() + LOCAL_ID)
