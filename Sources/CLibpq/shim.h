#ifndef MUSTER_CLIBPQ_SHIM_H
#define MUSTER_CLIBPQ_SHIM_H
#include <libpq-fe.h>

/* A request to cancel a connection's current statement. Since libpq 17, it has the connection's own encryption. */
#ifdef LIBPQ_HAS_ASYNC_CANCEL
typedef PGcancelConn CLibpqCancel;

static inline CLibpqCancel *clibpq_cancel_create(PGconn *connection) { return PQcancelCreate(connection); }

/* Blocks. Returns 1 if the server has received the request. */
static inline int clibpq_cancel_send(CLibpqCancel *cancel) {
  PQcancelReset(cancel);
  return PQcancelBlocking(cancel);
}

static inline void clibpq_cancel_free(CLibpqCancel *cancel) { PQcancelFinish(cancel); }
#else
typedef PGcancel CLibpqCancel;

static inline CLibpqCancel *clibpq_cancel_create(PGconn *connection) { return PQgetCancel(connection); }

static inline int clibpq_cancel_send(CLibpqCancel *cancel) {
  char message[256];
  return PQcancel(cancel, message, sizeof message);
}

static inline void clibpq_cancel_free(CLibpqCancel *cancel) { PQfreeCancel(cancel); }
#endif

#endif
