import Testing

@testable import FerrySyncClient

@Suite("Pauses of a watcher")
struct SharedBackOffTests {
  @Test("failures in a row are counted until the same half succeeds")
  func counting() {
    var rule = SharedBackOff()
    #expect(rule.fail(.sync) == 1)
    rule.resume(.sync)
    #expect(rule.fail(.sync) == 2)
    #expect(rule.fail(.connection) == 1)
    rule.resume(.sync)
    rule.succeed()
    #expect(rule.fail(.sync) == 1)
    #expect(rule.fail(.connection) == 2)
  }

  @Test("a live connection ends the pause of the syncs, once")
  func cutShort() {
    var rule = SharedBackOff()
    _ = rule.fail(.sync)
    #expect(rule.open() == .sync)
    #expect(rule.open() == nil)
    #expect(rule.fail(.sync) == 2)
    rule.resume(.sync)
    #expect(rule.open() == nil)
  }

  @Test("only a connection that has lived resets its pauses: no open one, and no sync")
  func ownPauses() {
    var rule = SharedBackOff()
    for failure in 1...5 {
      #expect(rule.fail(.connection) == failure)
      rule.succeed()
      rule.resume(.connection)
      _ = rule.open()
    }
    rule.live()
    #expect(rule.fail(.connection) == 1)
  }
}
