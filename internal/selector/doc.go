// Package selector reads JMS message selectors and evaluates them over messages.
//
// A text is cut into tokens, parsed by precedence climbing into a tree and evaluated with
// three-valued logic: a message matches when the result is True, not when it is Unknown. The
// grammar is that of ActiveMQ Classic, quirks included, because the same text must pick the same
// messages on both brokers:
//
//   - precedence from low to high: OR; AND; = <> IS NULL; < <= > >= LIKE BETWEEN IN; + -; * / %;
//     unary + - NOT; so NOT binds tighter than a comparison and "NOT i = 6" is "(NOT i) = 6";
//   - values of different kinds never compare as equal, numbers of different widths do;
//   - / and % work on float64; integer arithmetic wraps around as Java's does;
//   - IN takes string literals only, and a value that is not a string makes it Unknown;
//   - the prefix "convert_string_expressions:" makes comparisons of numbers with strings convert;
//   - functions REGEX, INLIST, MAKELIST, SPLIT and REPLACE extend JMS; their patterns are RE2, so
//     back-references and look-around are refused when the selector is read. What they and + make
//     is limited (MaxMadeBytes, MaxMatches), as are patterns that a message brings.
//
// Header identifiers (JMSDestination, JMSReplyTo, JMSType, JMSDeliveryMode, JMSPriority,
// JMSMessageID, JMSTimestamp, JMSCorrelationID, JMSExpiration, JMSRedelivered, JMSXDeliveryCount,
// JMSXGroupID, JMSXGroupSeq, JMSXUserID, JMSXProducerTXID, JMSXGroupFirstForConsumer,
// JMSActiveMQBrokerInTime, JMSActiveMQBrokerOutTime, JMSActiveMQBrokerPath) are names like others:
// whoever implements Fields answers them, JMSDeliveryMode as 'PERSISTENT' or 'NON_PERSISTENT'.
package selector
