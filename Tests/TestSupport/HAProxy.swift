import Foundation

/// The proxy that Ferry ships a configuration for.
package enum HAProxy {
  package static let program = URL(filePath: "/usr/sbin/haproxy")

  package static var isAvailable: Bool {
    FileManager.default.isExecutableFile(atPath: program.path)
  }
}
