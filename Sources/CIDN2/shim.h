#ifndef MUSTER_CIDN2_SHIM_H
#define MUSTER_CIDN2_SHIM_H
#include <idn2.h>
#endif
