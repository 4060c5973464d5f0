import FerryTestSupport
import Testing

@testable import FerryShell

@Suite("The watch over pages", .hangLimit)
struct PageWatchTests {
  private static func version(_ number: Int) throws -> PageVersion {
    PageVersion(
      name: "board", version: "\(number)", entry: try #require(BundlePath("index.html")),
      services: [])
  }

  private func after(_ seconds: Int) -> Duration { .seconds(seconds) }

  @Test("a page that reports in time is confirmed, once")
  func ready() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    #expect(watch.handle(.loaded(one), of: 1, at: after(0)).isEmpty)
    #expect(watch.nextDeadline == after(10))
    #expect(watch.handle(.connected, of: 1, at: after(1)).isEmpty)
    #expect(watch.handle(.ready, of: 1, at: after(9)) == [.confirm(page: 1, one)])
    #expect(watch.handle(.ready, of: 1, at: after(9)).isEmpty)
    #expect(watch.nextDeadline == nil)
    #expect(watch.expired(at: after(60)).isEmpty)
  }

  @Test("a page that does not report within ten seconds fails, and is not confirmed later")
  func silent() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    _ = watch.handle(.loaded(one), of: 1, at: after(0))
    _ = watch.handle(.connected, of: 1, at: after(1))
    #expect(watch.expired(at: .milliseconds(9_999)).isEmpty)
    let failure = PageFailure(.silent, "it did not call ferry.ready() in 10 s")
    #expect(watch.expired(at: after(10)) == [.fail(page: 1, one, failure)])
    #expect(watch.handle(.ready, of: 1, at: after(11)).isEmpty)
  }

  @Test("a late report fails the page, whatever woke the watch")
  func late() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    _ = watch.handle(.loaded(one), of: 1, at: after(0))
    _ = watch.handle(.connected, of: 1, at: after(1))
    let effects = watch.handle(.ready, of: 1, at: after(10))
    #expect(effects.count == 1)
    guard case .fail(page: 1, one, _) = effects.first else {
      Issue.record("\(effects)")
      return
    }
  }

  @Test("a page that its browser never ran proves nothing")
  func unopened() throws {
    var watch = PageWatch()
    _ = watch.handle(.loaded(try Self.version(1)), of: 1, at: after(0))
    #expect(watch.expired(at: after(20)).isEmpty)
  }

  @Test("a violation fails a page that worked, and only the first failure counts")
  func violated() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    for page in 1...2 {
      _ = watch.handle(.loaded(one), of: page, at: after(0))
      _ = watch.handle(.connected, of: page, at: after(1))
      _ = watch.handle(.ready, of: page, at: after(2))
    }
    let failure = PageFailure(.violated, "connect-src https://evil.example")
    let effects = watch.handle(.failed(failure), of: 1, at: after(30))
    #expect(effects == [.fail(page: 1, one, failure)])
    #expect(watch.handle(.failed(failure), of: 1, at: after(31)).isEmpty)
    #expect(watch.handle(.failed(failure), of: 2, at: after(31)).isEmpty)
  }

  @Test("a page that the user leaves does not fail; one that vanishes twice does")
  func vanished() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    for page in 1...5 {
      _ = watch.handle(.loaded(one), of: page, at: after(0))
      _ = watch.handle(.connected, of: page, at: after(1))
      #expect(watch.handle(.closed, of: page, at: after(2)).isEmpty)
    }
    _ = watch.handle(.loaded(one), of: 6, at: after(3))
    #expect(watch.handle(.vanished, of: 6, at: after(4)).isEmpty)
    _ = watch.handle(.loaded(one), of: 7, at: after(5))
    let failure = PageFailure(.crashed, "its process ended 2 times before it was ready")
    #expect(watch.handle(.vanished, of: 7, at: after(6)) == [.fail(page: 7, one, failure)])
  }

  @Test("a version that worked survives pages that vanish")
  func trusted() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    _ = watch.handle(.loaded(one), of: 1, at: after(0))
    _ = watch.handle(.ready, of: 1, at: after(1))
    for page in 2...9 {
      _ = watch.handle(.loaded(one), of: page, at: after(2))
      #expect(watch.handle(.vanished, of: page, at: after(3)).isEmpty)
    }
  }

  @Test("a web view may report the end of a page's process after its stream")
  func reported() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    _ = watch.handle(.loaded(one), of: 1, at: after(0))
    _ = watch.handle(.ready, of: 1, at: after(1))
    #expect(watch.handle(.vanished, of: 1, at: after(2)).isEmpty)
    let failure = PageFailure(.crashed, "its process crashed")
    #expect(watch.handle(.failed(failure), of: 1, at: after(2)) == [.fail(page: 1, one, failure)])
    #expect(watch.nextDeadline == nil)
  }

  @Test("the only version may be loaded again after its failure, and be confirmed")
  func again() throws {
    let one = try Self.version(1)
    var watch = PageWatch()
    _ = watch.handle(.loaded(one), of: 1, at: after(0))
    #expect(watch.handle(.failed(PageFailure(.crashed, "x")), of: 1, at: after(1)).count == 1)
    _ = watch.handle(.loaded(one), of: 2, at: after(2))
    #expect(watch.handle(.ready, of: 2, at: after(3)) == [.confirm(page: 2, one)])
  }
}
