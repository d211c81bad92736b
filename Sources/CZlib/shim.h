#ifndef MUSTER_CZLIB_SHIM_H
#define MUSTER_CZLIB_SHIM_H
#include <zlib.h>
#endif
