import FerryTestSupport
import Foundation

/// The code blocks of a document of this package.
struct DocumentedCode {
  let text: String

  init(_ path: String) throws {
    text = try Project.text(path)
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
        try FileManager.default.contentsOfDirectory(atPath: Project.file(folder).path)
          .filter { $0.hasSuffix(".md") }.map { folder + $0 }
      }
    }
  }
}
