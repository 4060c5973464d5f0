/// The damage to a body on the network. All of it is detectable: without TLS or a checksum, no
/// receiver can detect a changed letter.
enum Corruption {
  static func damage(_ body: [UInt8], _ choose: (Int) -> Int) -> [UInt8] {
    switch choose(3) {
    case 0:
      return Array(body.prefix(choose(max(1, body.count))))
    case 1 where !body.isEmpty:
      var body = body
      // No byte of UTF-8.
      body[choose(body.count)] = 0xFF
      return body
    default:
      return Array("<html><body>Sign in to use this network</body></html>".utf8)
    }
  }
}
