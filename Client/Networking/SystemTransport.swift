@_exported public import FerryTransport

#if SystemLibraries && !canImport(Darwin)
  @_exported public import FerryCurlTransport

  /// The transport of this build, for clients that name no other: that over libcurl, or without the
  /// package's trait `SystemLibraries` that over URLSession.
  public typealias SystemTransport = CurlTransport
#else
  /// The transport of this build, for clients that name no other: that over URLSession. With the
  /// package's trait `SystemLibraries` it is the one over libcurl.
  public typealias SystemTransport = URLSessionTransport
#endif
