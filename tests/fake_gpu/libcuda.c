/* Stands for a CUDA driver with GPUs that the tests cannot have. Written for fbisect: just the
 * functions that its probe calls, with made-up answers. It computes nothing.
 *
 *   cc -shared -fPIC -DDEVICES=2 -o libcuda.so.1 libcuda.c
 *
 * -DNO_NAME and -DNO_UUID leave a function out, as a driver of another age would;
 * -DCRASH makes the first call die, as a broken driver does.
 */

#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101 };

int cuInit(unsigned flags)
{
	(void)flags;
#ifdef CRASH
	abort();
#endif
	return DEVICES > 0 ? SUCCESS : NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
	*version = 12080;
	return SUCCESS;
}

int cuDeviceGetCount(int *count)
{
	*count = DEVICES;
	return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < DEVICES ? SUCCESS : INVALID_DEVICE;
}

#ifndef NO_NAME
int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	strncpy(name, "Fake GPU", (size_t)size);
	return SUCCESS;
}
#endif

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = attribute == 75 ? 9 : 0; /* compute capability 9.0 */
	return attribute == 75 || attribute == 76 ? SUCCESS : INVALID_VALUE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	(void)device;
	*bytes = (size_t)80 << 30;
	return SUCCESS;
}

#ifndef NO_UUID
int cuDeviceGetUuid(unsigned char *uuid, int device)
{
	memset(uuid, 0xa0 + device, 16);
	return SUCCESS;
}
#endif
