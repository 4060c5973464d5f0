extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByNilLiteral
{
  /// Creates a text.
  public init(stringLiteral value: String) { self = .text(value) }

  /// Creates an integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// Creates a real.
  public init(floatLiteral value: Double) { self = .real(value) }

  /// Creates NULL.
  public init(nilLiteral: ()) { self = .null }
}
