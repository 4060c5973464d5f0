// The C library of the system. All differences between Glibc, Musl, Bionic and Darwin are in this
// file.
#if canImport(Glibc)
  @_exported public import Glibc
#elseif canImport(Musl)
  @_exported public import Musl
#elseif canImport(Android)
  // Written after the names of the SDK for Android; nobody has compiled it.
  @_exported public import Android
#elseif canImport(Darwin)
  @_exported public import Darwin
#else
  #error("Ferry knows the C libraries Glibc, Musl, Bionic and Darwin")
#endif

/// Calls of the C library with different names or declarations on the systems.
package enum Platform {
  /// The type of a datagram socket, for socket(2) and getaddrinfo(3).
  package static var datagramSocket: Int32 {
    // Glibc declares the types as an enumeration.
    #if canImport(Glibc)
      Int32(SOCK_DGRAM.rawValue)
    #else
      SOCK_DGRAM
    #endif
  }

  /// F_OFD_SETLK, which C libraries declare only on request: a lock of the open file, not of the
  /// process (fcntl(2)).
  package static var setDescriptionLock: Int32 {
    #if canImport(Darwin)
      90
    #else
      37
    #endif
  }

  /// Releases the locks of an open file, flock(2) and ``setDescriptionLock``, for all holders of
  /// the file.
  ///
  /// Closing is not enough: a program started at this moment by another thread has the file, too,
  /// until it is executed.
  package static func unlock(_ descriptor: Int32) {
    _ = flock(descriptor, LOCK_UN)
    // A length of 0 is the whole file.
    var range: flock = .init()
    range.l_type = Int16(F_UNLCK)
    range.l_whence = Int16(SEEK_SET)
    _ = fcntl(descriptor, setDescriptionLock, &range)
  }

  /// Waits until the names in the folder of a file are on the disk, so a new name survives a loss
  /// of power. A writable but unreadable folder is left to the system.
  ///
  /// - Returns: whether it succeeded; if not, `errno` has the reason.
  package static func flushFolder(of path: String) -> Bool {
    let folder = path.last("/").map { String(path[...$0]) } ?? "."
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return true }
    defer { closeDescriptor(descriptor) }
    return fsync(descriptor) == 0
  }

  /// Closes a descriptor, for types with a method of the same name.
  package static func closeDescriptor(_ descriptor: Int32) {
    _ = close(descriptor)
  }

  /// Returns when a file was last written to, in whole seconds since 1970.
  package static func lastWrite(_ status: stat) -> Int64 {
    #if canImport(Darwin)
      Int64(status.st_mtimespec.tv_sec)
    #else
      Int64(status.st_mtim.tv_sec)
    #endif
  }

  /// Announces a read of a part of a file from start to end, so the kernel reads ahead. Systems
  /// without posix_fadvise(2) do so by themselves.
  package static func readsInOrder(_ descriptor: Int32, from start: Int, count: Int) {
    #if !canImport(Darwin)
      posix_fadvise(descriptor, off_t(start), off_t(count), POSIX_FADV_SEQUENTIAL)
    #endif
  }

  /// Begins to write a part of a file to the disk, and does not wait. A later fsync(2) reports
  /// failures. Without posix_fadvise(2) nothing begins before the fsync(2).
  package static func startFlushing(_ descriptor: Int32, from start: Int64, count: Int64) {
    #if !canImport(Darwin)
      // Linux writes unwritten pages, and drops only written ones.
      posix_fadvise(descriptor, off_t(start), off_t(count), POSIX_FADV_DONTNEED)
    #endif
  }

  /// Prepares a signal for a dispatch source. Darwin's sources only observe signals: their default
  /// action has to be switched off as well.
  package static func letSourceHandle(signal number: Int32) {
    #if canImport(Darwin)
      signal(number, SIG_IGN)
    #endif
  }

  /// Returns an identifier of the system's run since the last start; `nil` if it has none.
  package static func bootIdentifier() -> String? {
    #if canImport(Darwin)
      var text = [CChar](repeating: 0, count: 64)
      var size = text.count
      guard sysctlbyname("kern.bootsessionuuid", &text, &size, nil, 0) == 0 else { return nil }
      return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    #else
      let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return nil }
      defer { close(descriptor) }
      var text = [UInt8](repeating: 0, count: 64)
      let count = read(descriptor, &text, text.count)
      guard count > 0 else { return nil }
      return String(decoding: text[..<count].filter { $0 > 0x20 }, as: UTF8.self)
    #endif
  }
}
