import FerryProtocol

/// A reader of bytes from outside, with samples of the input.
struct FuzzTarget: Sendable {
  /// The name in reports, and the folder of the kept inputs.
  let name: String
  /// Folders or files of `Protocol/fixtures` with valid input.
  var fixtures: [String] = []
  /// More valid input.
  var samples: [String] = []
  /// Reads the input.
  ///
  /// - Returns: The kind of the result: the reason of a refusal, or the shape of the value.
  /// - Throws: ``FuzzFinding`` if a property does not hold.
  let read: @Sendable ([UInt8]) throws -> String
}

/// A property violated by an input.
struct FuzzFinding: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

extension FuzzTarget {
  /// Returns the target of a codec with an encoder. A value that is read and written is read back
  /// as an equal value with the same bytes.
  static func codec<T: Equatable & SendableMetatype>(
    _ name: String, _ fixtures: [String], _ samples: [String] = [],
    decode: @escaping @Sendable ([UInt8]) throws(MalformedMessage) -> T,
    encode: @escaping @Sendable (T) -> [UInt8]
  ) -> FuzzTarget {
    FuzzTarget(name: name, fixtures: fixtures, samples: samples) { bytes in
      let value: T
      do throws(MalformedMessage) { value = try decode(bytes) } catch { return kind(error.reason) }
      let written = encode(value)
      do throws(MalformedMessage) {
        let same = try decode(written)
        guard same != value || encode(same) != written else {
          return "read \(magnitude(written.count))"
        }
      } catch {
        throw FuzzFinding("the written value is not read back: \(error)")
      }
      throw FuzzFinding("the written value is read back as another")
    }
  }

  /// Returns the target of a text, such as a header: only the result's description counts.
  static func text(
    _ name: String, _ samples: [String], _ read: @escaping @Sendable (String) throws -> String
  ) -> FuzzTarget {
    FuzzTarget(name: name, samples: samples) { bytes in
      try read(String(decoding: bytes, as: UTF8.self))
    }
  }

  /// Returns the first words of a reason without names and numbers, so equal reasons are one kind.
  static func kind(_ reason: String) -> String {
    let words = reason.utf8.prefix { $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "'") }
      .split(separator: UInt8(ascii: " ")).prefix(7)
    let kept = words.map { word in
      let isPlain = word.allSatisfy { (0x61...0x7A).contains($0 | 0x20) }
      return isPlain && word.count < 20 ? String(Substring(word)) : "#"
    }
    return "refused: " + kept.joined(separator: " ")
  }

  /// Returns the power of two of a size, as a part of a kind.
  static func magnitude(_ size: Int) -> String {
    size == 0 ? "empty" : "2^\(Int.bitWidth - size.leadingZeroBitCount)"
  }
}
