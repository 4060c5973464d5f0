extension SpaceInfo: JSONMessage {
  package static var noun: String? { "this is not a Ferry space" }
  package static var blank: Self {
    Self(space: .blank, epoch: Epoch(0), head: 0, role: .reader, serverTime: 0)
  }

  package mutating func members(_ json: inout JSONMembers) throws(MalformedMessage) {
    try json.required("space", &space)
    try json.required("epoch", &epoch)
    try json.required("head", &head, as: .sequence)
    try json.required("role", &role)
    try json.required("time", &serverTime, as: .wallTime)
  }
}
