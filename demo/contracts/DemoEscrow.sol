// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./AcrossForms.sol";
import "./DemoPair.sol";

/// Takes deposits, in the form of LI.FI's AcrossFacetV4, for delivery on another chain by the relayer, who gives back what they do not deliver.
/// It trusts the relayer, because it cannot read the other chain, and the wallet that its deposit is as the relayer quoted.
contract DemoEscrow is AcrossForms {
    struct Deposit {
        /// Makes every quote unique.
        bytes32 transactionId;
        /// The zero address is the native coin.
        address token;
        uint256 amount;
        uint256 toChainId;
        AcrossV4Data across;
    }

    enum State {
        NONE,
        OPEN,
        RETURNED
    }

    /// Seconds after the quote within which the deposit is possible.
    uint256 private constant PAY_WITHIN = 60;
    /// Seconds from the deadline of the delivery to the refund: more than the clocks of two chains differ.
    uint256 private constant RETURN_AFTER = 3600;

    address private immutable relayer;
    mapping(bytes32 => State) private stateOf;

    event Deposited(bytes32 indexed id, Deposit deposit);
    event Returned(bytes32 indexed id);

    constructor(address relayer_) {
        relayer = relayer_;
    }

    /// The contract that serves a function, as LI.FI's diamond answers it.
    function facetAddress(bytes4 selector) external view returns (address) {
        return selector == this.startBridgeTokensViaAcrossV4.selector ? address(this) : address(0);
    }

    function startBridgeTokensViaAcrossV4(BridgeData calldata b, AcrossV4Data calldata a) external payable {
        require(block.timestamp <= a.quoteTimestamp + PAY_WITHIN, "the quote is over");
        require(_payer(a) == msg.sender, "somebody else's quote");
        Deposit memory d = Deposit(b.transactionId, b.sendingAssetId, b.minAmount, b.destinationChainId, a);
        bytes32 id = _idOf(d);
        require(stateOf[id] == State.NONE, "a quote is used once");
        require(msg.value == (d.token == address(0) ? d.amount : 0), "other coins than quoted");
        stateOf[id] = State.OPEN;
        emit Deposited(id, d);
        if (d.token != address(0)) AnyToken.pull(d.token, msg.sender, address(this), d.amount);
    }

    function giveBack(Deposit calldata d) external {
        require(msg.sender == relayer, "not the relayer");
        require(block.timestamp >= d.across.fillDeadline + RETURN_AFTER, "it may still be delivered");
        bytes32 id = _idOf(d);
        require(stateOf[id] == State.OPEN, "no such deposit is open");
        stateOf[id] = State.RETURNED;
        emit Returned(id);
        if (d.token != address(0)) return AnyToken.send(d.token, _payer(d.across), d.amount);
        (bool ok,) = _payer(d.across).call{value: d.amount}("");
        require(ok, "coins were not taken");
    }

    function _idOf(Deposit memory d) private view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), d));
    }

    function _payer(AcrossV4Data calldata a) private pure returns (address) {
        return address(uint160(uint256(a.refundAddress)));
    }
}
