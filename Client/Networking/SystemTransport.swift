#if SystemLibraries && !canImport(Darwin)
  /// The default transport of this build: that over libcurl, or without the package's trait
  /// `SystemLibraries` that over URLSession.
  public typealias SystemTransport = CurlTransport
#else
  /// The default transport of this build: that over URLSession. With the package's trait
  /// `SystemLibraries` it is the one over libcurl.
  public typealias SystemTransport = URLSessionTransport
#endif
