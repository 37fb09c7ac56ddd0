// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./AcrossForms.sol";
import "./DemoPair.sol";

/// Holds deposits for delivery on another chain. The relayer claims a deposit once it has delivered, or the payer gets it back. Deposits have
/// the form of LI.FI's AcrossFacetV4, with the relayer's signature of the quote in `integrator`, as 130 hexadecimal digits.
contract DemoEscrow is AcrossForms {
    /// A quote of the relayer, who signs all of it.
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
        TAKEN,
        RETURNED
    }

    /// Seconds after the quote within which the deposit is possible.
    uint256 private constant PAY_WITHIN = 60;
    /// Seconds from the deadline of the delivery to the refund: more than the clocks of two chains differ, and enough for the relayer to claim.
    uint256 private constant RETURN_AFTER = 3600;

    address public immutable relayer;
    mapping(bytes32 => State) public stateOf;

    event Deposited(bytes32 indexed id, Deposit deposit);
    event Taken(bytes32 indexed id);
    event Returned(bytes32 indexed id);

    constructor(address relayer_) {
        relayer = relayer_;
    }

    /// The contract that serves a function, as LI.FI's diamond answers it.
    function facetAddress(bytes4 selector) external view returns (address) {
        return selector == this.startBridgeTokensViaAcrossV4.selector ? address(this) : address(0);
    }

    function idOf(Deposit memory d) public view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, address(this), d));
    }

    function startBridgeTokensViaAcrossV4(BridgeData calldata b, AcrossV4Data calldata a) external payable {
        require(block.timestamp <= a.quoteTimestamp + PAY_WITHIN, "the quote is over");
        require(_payer(a) == msg.sender, "somebody else's quote");
        Deposit memory d = Deposit(b.transactionId, b.sendingAssetId, b.minAmount, b.destinationChainId, a);
        bytes32 id = idOf(d);
        require(_signer(id, bytes(b.integrator)) == relayer, "not a quote of the relayer's");
        require(stateOf[id] == State.NONE, "a quote is used once");
        require(msg.value == (d.token == address(0) ? d.amount : 0), "other coins than quoted");
        stateOf[id] = State.OPEN;
        emit Deposited(id, d);
        if (d.token == address(0)) return;
        AnyToken.pull(d.token, msg.sender, address(this), d.amount);
    }

    /// Pays the deposit to the relayer after its delivery. The relayer is trusted, because this contract cannot read the other chain.
    function take(Deposit calldata d) external {
        require(msg.sender == relayer, "not the relayer");
        bytes32 id = _close(d, State.TAKEN);
        emit Taken(id);
        _send(d, relayer);
    }

    /// Refunds a deposit that was not delivered in time; anybody may call it.
    function giveBack(Deposit calldata d) external {
        require(block.timestamp >= d.across.fillDeadline + RETURN_AFTER, "it may still be delivered");
        bytes32 id = _close(d, State.RETURNED);
        emit Returned(id);
        _send(d, _payer(d.across));
    }

    function _payer(AcrossV4Data calldata a) private pure returns (address) {
        return address(uint160(uint256(a.refundAddress)));
    }

    /// @param digits the signature of eth_sign: r, s and v in lower-case hexadecimal digits
    function _signer(bytes32 id, bytes calldata digits) private pure returns (address) {
        require(digits.length == 130, "no signature");
        bytes32 signed = keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", id));
        uint256 v = _number(digits[128:]);
        return ecrecover(signed, uint8(v), bytes32(_number(digits[:64])), bytes32(_number(digits[64:128])));
    }

    function _number(bytes calldata digits) private pure returns (uint256 number) {
        unchecked {
            for (uint256 i = 0; i < digits.length; i++) {
                uint256 digit = uint8(digits[i]);
                number = (number << 4) | (digit < 58 ? digit - 48 : digit - 87);
            }
        }
    }

    function _close(Deposit calldata d, State state) private returns (bytes32 id) {
        id = idOf(d);
        require(stateOf[id] == State.OPEN, "no such deposit is open");
        stateOf[id] = state;
    }

    function _send(Deposit calldata d, address to) private {
        if (d.token == address(0)) {
            (bool ok,) = to.call{value: d.amount}("");
            require(ok, "coins were not taken");
        } else {
            AnyToken.send(d.token, to, d.amount);
        }
    }
}
