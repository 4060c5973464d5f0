/// A file of the console: a page for administrators, which is in the program itself.
package struct ConsoleFile: Sendable {
  package let mediaType: String
  package let content: [UInt8]

  /// The page may load files and data from its own server only.
  package static let securityPolicy = """
    default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
    """

  /// Finds a file by name; the empty name is the page. Returns `nil` if there is none.
  package static func named(_ name: String) -> ConsoleFile? {
    if let source = scripts[name] { return ConsoleFile("text/javascript", source()) }
    switch name {
    case "": return ConsoleFile("text/html", PackageResources.index_html)
    case "style.css": return ConsoleFile("text/css", PackageResources.style_css)
    default: return nil
    }
  }

  /// The names of the scripts.
  package static var scriptNames: [String] { scripts.keys.sorted() }

  private init(_ type: String, _ content: [UInt8]) {
    mediaType = type + "; charset=utf-8"
    self.content = content
  }

  private static let scripts: [String: @Sendable () -> [UInt8]] = [
    "start.js": { PackageResources.start_js },
    "api.js": { PackageResources.api_js },
    "parts.js": { PackageResources.parts_js },
    "format.js": { PackageResources.format_js },
    "chart.js": { PackageResources.chart_js },
    "server.js": { PackageResources.server_js },
    "spaces.js": { PackageResources.spaces_js },
    "devices.js": { PackageResources.devices_js },
    "members.js": { PackageResources.members_js },
    "records.js": { PackageResources.records_js },
    "conflicts.js": { PackageResources.conflicts_js },
    "schema.js": { PackageResources.schema_js },
    "missions.js": { PackageResources.missions_js },
    "bundles.js": { PackageResources.bundles_js },
    "declaration.js": { PackageResources.declaration_js },
    "folder.js": { PackageResources.folder_js },
    "upload.js": { PackageResources.upload_js },
    "sha256.js": { PackageResources.sha256_js },
    "tokens.js": { PackageResources.tokens_js },
  ]
}
