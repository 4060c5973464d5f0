#pragma once
#include <microhttpd.h>
#include <stdarg.h>
#include <stdbool.h>

// MHD_start_daemon and MHD_get_connection_info are variadic, which Swift cannot call.

/// The settings that Swift passes to `ferry_mhd_start`.
struct ferry_mhd_options {
  unsigned int threads;
  /// Bytes of each connection's pool: request line, headers, and a read or write buffer.
  size_t connection_memory;
  unsigned int connections;
  unsigned int idle_seconds;
  void *context;
  MHD_AccessHandlerCallback access;
  void *(*request_line)(void *context, const char *target, struct MHD_Connection *connection);
  MHD_RequestCompletedCallback completed;
  MHD_NotifyConnectionCallback connection;
  /// Called on the connection's thread when libmicrohttpd begins to respond to an error by itself.
  void (*fault)(void *context);
};

/// libmicrohttpd logs each error before it responds to it; the text is of no interest.
static inline void ferry_mhd_log(void *options, const char *format, va_list arguments) {
  (void) format;
  (void) arguments;
  const struct ferry_mhd_options *known = (const struct ferry_mhd_options *) options;
  known->fault(known->context);
}

/// Starts a daemon without a listening socket: connections come from MHD_add_connection. The
/// options stay in use until the daemon has stopped.
static inline struct MHD_Daemon *ferry_mhd_start(struct ferry_mhd_options *options) {
  const unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME
                             | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
  struct MHD_OptionItem pool[] = {
    // A pool of one is an error to libmicrohttpd.
    { options->threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END,
      (intptr_t) options->threads, NULL },
    { MHD_OPTION_END, 0, NULL }
  };
  return MHD_start_daemon(
    flags, 0, NULL, NULL, options->access, options->context,
    // The first option: those that follow may log.
    MHD_OPTION_EXTERNAL_LOGGER, ferry_mhd_log, (void *) options,
    MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->connection_memory,
    MHD_OPTION_CONNECTION_LIMIT, options->connections,
    MHD_OPTION_CONNECTION_TIMEOUT, options->idle_seconds,
    // Otherwise it responds to a request without Host by two heads. The intake checks all of that.
    MHD_OPTION_STRICT_FOR_CLIENT, 0,
    MHD_OPTION_URI_LOG_CALLBACK, options->request_line, options->context,
    MHD_OPTION_NOTIFY_COMPLETED, options->completed, options->context,
    MHD_OPTION_NOTIFY_CONNECTION, options->connection, options->context,
    MHD_OPTION_ARRAY, pool,
    MHD_OPTION_END);
}

/// The connection's socket, or -1.
static inline int ferry_mhd_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

/// The peer's address, owned by the connection, or NULL.
static inline const struct sockaddr *ferry_mhd_peer(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info == NULL ? NULL : info->client_addr;
}

/// The slot for an object of ours that lives as long as the connection, or NULL.
static inline void *ferry_mhd_socket_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == NULL ? NULL : info->socket_context;
}

/// Whether the request's headers have been read to their end.
static inline bool ferry_mhd_has_headers(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL;
}

/// The status of the queued response, or 0 when there is none.
static inline unsigned int ferry_mhd_status(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS);
  return info == NULL ? 0 : info->http_status;
}

/// Bytes of request line and headers, or 0 when they were not all received.
static inline size_t ferry_mhd_header_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info == NULL ? 0 : info->header_size;
}
