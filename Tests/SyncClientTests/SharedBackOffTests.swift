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
    _ = rule.succeed(.sync)
    #expect(rule.fail(.sync) == 1)
    #expect(rule.fail(.connection) == 2)
  }

  @Test("if one half succeeds, the other's pause ends, once")
  func cutShort() {
    var rule = SharedBackOff()
    _ = rule.fail(.sync)
    #expect(rule.succeed(.connection) == .sync)
    #expect(rule.succeed(.connection) == nil)
    #expect(rule.fail(.sync) == 2)
    _ = rule.fail(.connection)
    #expect(rule.succeed(.sync) == .connection)
  }

  @Test("a half that does not wait is not resumed")
  func notWaiting() {
    var rule = SharedBackOff()
    _ = rule.fail(.sync)
    rule.resume(.sync)
    #expect(rule.succeed(.connection) == nil)
    #expect(rule.succeed(.sync) == nil)
  }
}
