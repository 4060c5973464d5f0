import FerryProtocol

/// The service `device.info`: facts about the program and the system, without identifiers of the
/// user.
public struct DeviceServices: Sendable {
  private let app: String
  private let appVersion: String

  /// Creates the service of an app.
  public init(app: String, version: String) {
    self.app = app
    appVersion = version
  }

  /// All of them.
  public var all: [Service] {
    [
      Service(
        "device.info", permission: "reads the program's version and the kind of system",
        argument: .nothing, result: .map(of: .text(max: 256), max: 16)
      ) { [app, appVersion] call in
        [
          "app": .text(app), "appVersion": .text(appVersion),
          "shell": .text("\(Shell.version)"), "system": .text(Self.system),
          "bundle": .text(call.bundle.name), "bundleVersion": .text("\(call.bundle.version)"),
        ]
      }
    ]
  }

  private static var system: String {
    #if os(Linux)
      "linux"
    #elseif os(macOS)
      "macos"
    #elseif os(iOS)
      "ios"
    #elseif os(Android)
      "android"
    #else
      "other"
    #endif
  }
}
