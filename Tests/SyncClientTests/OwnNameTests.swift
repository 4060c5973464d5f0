import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The times at which a device sends a name, as a table.
@Suite(.hangLimit)
struct OwnNameTests {
  private static let first = DeviceID(UniqueID(high: 1, low: 1))
  private static let second = DeviceID(UniqueID(high: 1, low: 2))

  private func name(_ text: String) throws -> DeviceName { try DeviceName(checking: text) }

  private func page(
    _ name: DeviceName? = nil, isKnown: Bool = true, changes: SequenceNumber = 0
  ) -> ShownNames {
    ShownNames(device: Self.first, isKnown: isKnown, name: name, changes: changes)
  }

  @Test("a device without a name sends nothing, and one with a name sends it once")
  func once() throws {
    var own = OwnName()
    #expect(!own.isToSend(as: Self.first, isKnown: true))
    own.set(try name("Ada"))
    #expect(!own.isToSend(as: Self.first, isKnown: false), "the server has no packet of it")
    #expect(own.isToSend(as: Self.first, isKnown: true))
    own.end(sending: NamedDevice(Self.first, try name("Ada")), isTaken: true)
    #expect(!own.isToSend(as: Self.first, isKnown: true))
    own.set(nil)
    #expect(own.isToSend(as: Self.first, isKnown: true), "a removal is sent as well")
  }

  @Test("a name that the server lost, or has for a former identifier only, is sent again")
  func again() throws {
    var own = OwnName()
    own.set(try name("Ada"))
    own.end(sending: NamedDevice(Self.first, try name("Ada")), isTaken: true)
    #expect(own.isToSend(as: Self.second, isKnown: true), "a new identifier")
    _ = own.apply(page(try name("Ada")))
    #expect(!own.isToSend(as: Self.first, isKnown: true))
    _ = own.apply(page(try name("older")))
    #expect(own.isToSend(as: Self.first, isKnown: true), "a restored server")
    _ = own.apply(page(isKnown: false))
    #expect(own.isToSend(as: Self.first, isKnown: true), "a server that forgot the device")
  }

  @Test("a refused name waits for a page that shows another name, or for the user")
  func refused() throws {
    var own = OwnName()
    let sent = NamedDevice(Self.first, try name("Ada"))
    own.set(sent.name)
    own.end(sending: sent, isTaken: false)
    #expect(!own.isToSend(as: Self.first, isKnown: true))
    _ = own.apply(page())
    #expect(own.isToSend(as: Self.first, isKnown: true))
    own.end(sending: sent, isTaken: false)
    own.set(try name("Bob"))
    #expect(own.isToSend(as: Self.first, isKnown: true))
    // The user changed the name while the former one was sent.
    own.end(sending: sent, isTaken: false)
    #expect(own.isToSend(as: Self.first, isKnown: true))
  }

  @Test("names of others may have changed if the number in a page differs, also if it is lower")
  func changes() {
    var own = OwnName()
    #expect([0, 2, 2, 1].map { own.apply(page(changes: $0)) } == [false, true, false, true])
  }
}
