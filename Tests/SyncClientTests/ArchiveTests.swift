import FerryProtocol
import Testing

@testable import FerrySyncClient

/// How long confirmed operations are kept (SPEC.md §18).
extension SetBackTests {
  @Test("confirmed operations are kept up to the stated age")
  func archiveIsBounded() throws {
    let (replica, packets) = try confirmed()
    try replica.apply([], head: 3, tail: packets[1].tail)
    func archived() throws -> Int {
      try replica.file.connection.count("SELECT count(*) FROM ferry_archive")
    }
    #expect(try archived() == 2)
    func confirmNext(_ record: String, at time: Int64, place: SequenceNumber) throws -> Int {
      try replica.run("INSERT INTO tasks(id) VALUES ('\(record)')")
      var answer = try replica.receipt(try replica.freeze()[0], first: place)
      answer.serverTime = time
      _ = try replica.file.chain.receive(answer)
      return try archived()
    }
    // A server may lie about the time, or the server's clock may leap: this device's counts, too.
    let later = PacketChain.archiveAgeMax + 1
    #expect(try confirmNext("c", at: later, place: 4) == 3)
    #expect(try confirmNext("d", at: 0, place: 5) == 4)
    // This device's clock may leap: the server's counts, too.
    replica.clock.now += later
    #expect(try confirmNext("e", at: 1, place: 6) == 5)
    #expect(try confirmNext("f", at: later, place: 7) == 2)
  }

  @Test("if this device's clock was put back, the server's decides about the age")
  func clockPutBack() throws {
    let (replica, packets) = try confirmed()
    try replica.apply([], head: 3, tail: packets[1].tail)
    replica.clock.now -= 1
    try replica.apply(
      [], head: 4, tail: packets[1].tail, serverTime: PacketChain.archiveAgeMax + 1)
    #expect(try replica.file.connection.count("SELECT count(*) FROM ferry_archive") == 0)
  }

  @Test("a server's clock that was ahead once keeps no operation longer")
  func archiveAfterLeap() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    func confirmNext(_ record: String, at time: Int64, place: SequenceNumber) throws -> Int {
      try replica.run("INSERT INTO tasks(id) VALUES ('\(record)')")
      var answer = try replica.receipt(try replica.freeze()[0], first: place)
      answer.serverTime = time
      _ = try replica.file.chain.receive(answer)
      return try replica.file.connection.count("SELECT count(*) FROM ferry_archive")
    }
    #expect(try confirmNext("a", at: 400 * 86_400_000, place: 1) == 1)
    #expect(try confirmNext("b", at: 1, place: 2) == 2)
    replica.clock.now += PacketChain.archiveAgeMax + 1
    #expect(try confirmNext("c", at: PacketChain.archiveAgeMax + 2, place: 3) == 1)
  }

  @Test(
    "a server that forgot a device which was away for long gets nothing that it confirmed",
    arguments: [(PacketChain.archiveAgeMax, 1), (PacketChain.archiveAgeMax + 1, 0)])
  func forgottenDevice(age: Int64, sent: Int) throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    _ = try replica.file.chain.receive(replica.receipt(replica.freeze()[0], first: 1))
    replica.clock.now += age
    let page = PageMaker().page([], head: 1, serverTime: age)
    _ = try replica.file.apply(last: page.body, page.head)
    #expect(try replica.freeze().flatMap(\.operations).count == sent)
  }
}
