import FerryProtocol

extension [UInt8] {
  private static let changesKey: StaticString = ",\"changes\":["

  /// Returns the page with another head, and with the same notices and changes.
  func replacingHead(_ head: PageHead) -> [UInt8] {
    var json = JSONWriter(capacity: count + 64)
    json.beginPage(head)
    let begun = json.finish()
    guard let end = begun.place(of: Self.changesKey),
      let rest = place(of: ",\"notices\":[") ?? place(of: Self.changesKey)
    else { return self }
    return Array(begun[..<end] + self[rest...])
  }

  /// Returns the page with more changes before its own ones, and with a head that counts them.
  func adding(_ changes: [Change], to head: PageHead) -> [UInt8] {
    var counted = head
    counted.count += changes.count
    var page = replacingHead(counted)
    guard let key = page.place(of: Self.changesKey) else { return self }
    var added: [UInt8] = []
    for (index, change) in changes.enumerated() {
      var json = JSONWriter()
      json.change(change)
      added += json.finish()
      if index < changes.count - 1 || head.count > 0 { added.append(UInt8(ascii: ",")) }
    }
    page.insert(contentsOf: added, at: key + Self.changesKey.utf8CodeUnitCount)
    return page
  }

  /// Returns the bytes with the first occurrence of a text replaced.
  func replacing(_ text: StaticString, by other: String) -> [UInt8] {
    guard let place = place(of: text) else { return self }
    return Array(self[..<place] + Array(other.utf8) + self[(place + text.utf8CodeUnitCount)...])
  }

  private func place(of text: StaticString) -> Int? {
    let sought = Array(text.description.utf8)
    return indices.dropLast(sought.count - 1).first { self[$0...].starts(with: sought) }
  }
}
