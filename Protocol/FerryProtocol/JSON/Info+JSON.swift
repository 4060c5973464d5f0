extension SpaceInfo {
  /// Returns the encoded info.
  package func encoded() -> [UInt8] {
    var json = JSONWriter(capacity: 256)
    json.object { json in
      json.member("space", space.value)
      json.member("epoch", epoch.description)
      json.member("head", digits: head)
      json.member("role", role.rawValue)
      json.member("time", serverTime)
    }
    return json.finish()
  }

  package init(decoding bytes: [UInt8]) throws(MalformedMessage) {
    self = try decode(bytes) { (reader) throws(MalformedMessage) in
      var space: SpaceName?
      var epoch: Epoch?
      var head: SequenceNumber?
      var role: Role?
      var time: Int64?
      try reader.object { (key, reader) throws(MalformedMessage) in
        switch key {
        case "space": space = SpaceName(try reader.string())
        case "epoch": epoch = Epoch(try reader.string())
        case "head": head = try reader.sequence()
        case "role": role = Role(rawValue: try reader.string())
        case "time": time = try reader.wallTime()
        default: try reader.skip()
        }
      }
      guard let space, let epoch, let head, let role, let time else {
        throw reader.malformed("this is not a Ferry space")
      }
      return SpaceInfo(space: space, epoch: epoch, head: head, role: role, serverTime: time)
    }
  }
}
