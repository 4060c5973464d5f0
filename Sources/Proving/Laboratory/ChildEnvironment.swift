import Foundation

/// The variables of started programs: those of the user's shell, without all those with an
/// influence on results. `Scripts/run-tests.sh` removes the same ones for the tests themselves.
enum ChildEnvironment {
  /// Names with these beginnings are removed, but for ``kept``.
  private static let prefixes = ["FERRY_", "PG", "OTEL_", "AWS_", "WEED_", "LC_", "XDG_"]
  private static let kept = ["FERRY_TEST_", "FERRY_OPTIMISED"]
  private static let names: Set = [
    "LANG", "LANGUAGE", "TZ", "HOME", "COLUMNS", "LINES", "NO_COLOR", "DISPLAY",
    "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "BROWSER", "CURL_HOME", "BASH_ENV", "ENV",
    "SQLITE_TMPDIR",
  ]
  /// Proxies, in small letters; curl knows them in large ones, too.
  private static let proxies: Set = [
    "http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",
  ]

  /// Of this process, for all children.
  static let shared: [String: String] = {
    var variables = cleaned(ProcessInfo.processInfo.environment)
    if let home = ChildHome.path { variables["HOME"] = home }
    // The programs of one installation belong together: pg_dump reads no newer server.
    if variables["FERRY_TEST_POSTGRES"] == nil, let programs = try? PostgresInstallation.find() {
      variables["PATH"] = "\(programs.directory):\(variables["PATH"] ?? "/usr/bin:/bin")"
    }
    return variables
  }()

  /// Returns variables without those of the user's own settings.
  static func cleaned(_ variables: [String: String]) -> [String: String] {
    var cleaned = variables.filter { name, _ in
      if kept.contains(where: name.hasPrefix) { return true }
      return !names.contains(name) && !proxies.contains(name.lowercased())
        && !prefixes.contains(where: name.hasPrefix)
    }
    cleaned["LANG"] = "C.UTF-8"
    cleaned["TZ"] = "UTC"
    return cleaned
  }
}

/// An empty home, so no program reads or writes files of the user's: `~/.pgpass`, `~/.psqlrc`,
/// `~/.curlrc`, or the default folders of `ferry` and `ferryd`.
private enum ChildHome {
  /// `nil` if it cannot be made.
  static let path: String? = {
    directory.map {
      atexit { ChildHome.remove() }
      return $0.url.path
    }
  }()

  private static let directory = try? TemporaryDirectory(prefix: "ferry-home")

  private static func remove() {
    if let directory { try? FileManager.default.removeItem(at: directory.url) }
  }
}
