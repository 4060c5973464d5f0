import Foundation

/// The code blocks of a document of this package.
struct DocumentedCode {
  /// The folder of the package.
  static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

  let text: String

  init(_ path: String) throws {
    text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
  }

  /// Returns the blocks of a language, in the document's order.
  func blocks(_ language: String) -> [String] {
    text.components(separatedBy: "```\(language)\n").dropFirst().compactMap { part in
      part.components(separatedBy: "```").first
    }
  }

  /// The paths of all documents.
  static var documents: [String] {
    get throws {
      try ["", "Documentation/", "Protocol/", "Client/Ferry/Ferry.docc/"].flatMap { folder in
        try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
          .filter { $0.hasSuffix(".md") }.map { folder + $0 }
      }
    }
  }
}
