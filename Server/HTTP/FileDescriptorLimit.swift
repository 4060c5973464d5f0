import Glibc

/// The limit of files and sockets of this process.
package enum FileDescriptorLimit {
  /// Raises the soft limit to the hard one and returns the new limit.
  ///
  /// Each connection takes one descriptor, and a usual soft limit of 1,024 is less than a server
  /// with 1,000 listeners needs. Nothing changes if the system refuses.
  @discardableResult
  package static func raise() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
    var raised = limit
    raised.rlim_cur = limit.rlim_max
    if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
    return Int(clamping: limit.rlim_cur)
  }
}
