import FerryProtocol

/// The number of changes in an encoded page, for the metrics, without reading the page.
enum PageCount {
  private static let label = Array("\"count\":".utf8)
  /// The count is within the page's head, which contains nothing of a user's.
  private static let headMax = 512

  /// Returns the count; zero for anything but a page.
  static func read(_ page: [UInt8]) -> Int {
    let head = page.prefix(headMax)
    guard
      let start = head.indices.first(where: { head[$0...].starts(with: label) })
    else { return 0 }
    let digits = head[(start + label.count)...].prefix { (0x30...0x39).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self)) ?? 0
  }
}
