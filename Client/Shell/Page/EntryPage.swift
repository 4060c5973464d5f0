import FerryProtocol

/// Adds the bridge to the document of a page; pure.
enum EntryPage {
  /// The most bytes of an entry document.
  static let bytesMax = BundleLimits.standard.entryBytes

  /// Returns the document with the page's secret and the script of the bridge, before any script of
  /// the bundle.
  ///
  /// - Parameter base: the path of the page, with a slash at the end.
  static func injected(_ document: [UInt8], secret: Secret, base: String) -> [UInt8] {
    let lines = """
      <meta name="ferry-page" content="\(secret.text)">\
      <script src="\(base)-/ferry.js"></script>
      """
    let place = headStart(document)
    return document[..<place] + Array(lines.utf8) + document[place...]
  }

  /// Returns the place after `<head>`, or else after `<html>`, the doctype and comments: elements
  /// there are the head's first ones (HTML §13.2.6.4).
  static func headStart(_ document: [UInt8]) -> Int {
    var place = document.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    while true {
      var next = place
      while next < document.count, [0x20, 0x09, 0x0A, 0x0C, 0x0D].contains(document[next]) {
        next += 1
      }
      if begins(document, at: next, "<!--") {
        guard let end = find("-->", in: document, from: next + 4) else { return place }
        place = end
      } else if begins(document, at: next, "<!doctype") || isTag("<html", document, at: next) {
        guard let end = tagEnd(document, from: next) else { return place }
        place = end
      } else if isTag("<head", document, at: next) {
        return tagEnd(document, from: next) ?? place
      } else {
        return place
      }
    }
  }

  private static func isTag(_ name: String, _ document: [UInt8], at place: Int) -> Bool {
    guard begins(document, at: place, name), place + name.utf8.count < document.count else {
      return false
    }
    return [0x20, 0x09, 0x0A, 0x0C, 0x0D, 0x2F, 0x3E].contains(document[place + name.utf8.count])
  }

  private static func begins(_ document: [UInt8], at place: Int, _ text: String) -> Bool {
    guard place + text.utf8.count <= document.count else { return false }
    return zip(document[place...], text.utf8).allSatisfy { byte, expected in
      (0x41...0x5A ~= byte ? byte + 0x20 : byte) == expected
    }
  }

  /// Returns the place after a tag; a `>` within quotes does not end it.
  private static func tagEnd(_ document: [UInt8], from place: Int) -> Int? {
    var quote: UInt8?
    for index in place..<document.count {
      let byte = document[index]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == 0x22 || byte == 0x27 {
        quote = byte
      } else if byte == 0x3E {
        return index + 1
      }
    }
    return nil
  }

  private static func find(_ text: String, in document: [UInt8], from place: Int) -> Int? {
    var index = place
    while index + text.utf8.count <= document.count {
      if document[index...].starts(with: text.utf8) { return index + text.utf8.count }
      index += 1
    }
    return nil
  }
}
